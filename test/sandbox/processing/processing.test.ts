import { expect, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { until } from '../../support/until.ts'
import { order, setup, submission } from '../setup.ts'

const on = openForFile(() => setup({ processingTime: 'constant:600' }))

async function submit(field2 = 'text'): Promise<string> {
  return (await on.call('POST', '/api/v1/data', submission({ field2 }))).json.transactionId
}

async function createOrder(): Promise<string> {
  return (await on.call('POST', '/api/v1/orders', order())).json.orderId
}

async function statusOf(path: string) {
  return (await on.call('GET', `/api/v1/${path}`)).json
}

test('a transaction that a test finishes is completed at once, even one that would have failed', async () => {
  const id = await submit('fail:E003')
  const row = await on.control('PATCH', `/transactions/${id}`, { finish: 'completed' })
  expect(row).toMatchObject({ transactionId: id, outcome: 'completed', errorCode: null, held: false })
  const { status, result, errorCode } = await statusOf(`data/${id}`)
  expect({ status, errorCode }).toEqual({ status: 'completed', errorCode: undefined })
  expect(Math.abs(Date.parse(result.processedAt) - Date.parse(row.doneAt))).toBeLessThan(1)
})

test.each([
  [{ finish: 'failed', errorCode: 'E002' }, 'E002'],
  [{ finish: 'failed' }, 'E001'],
])('a transaction that gets %j fails with %s', async (patch, errorCode) => {
  const id = await submit()
  await on.control('PATCH', `/transactions/${id}`, patch)
  expect(await statusOf(`data/${id}`)).toMatchObject({ status: 'failed', errorCode })
})

test('a held transaction stays pending past its time and over a restart, and ends when it is released', async () => {
  const id = await submit('fail:E003')
  await on.control('PATCH', `/transactions/${id}`, { hold: true })
  await on.control('POST', '/clock', { advanceSeconds: 900 })
  await on.restart()
  expect((await statusOf(`data/${id}`)).status).toBe('pending')
  const { now } = await on.control('GET', '/clock')
  await on.control('PATCH', `/transactions/${id}`, { hold: false })
  const { status, errorCode, result } = await statusOf(`data/${id}`)
  expect({ status, errorCode }).toEqual({ status: 'failed', errorCode: 'E003' })
  expect(Date.parse(result.processedAt)).toBeGreaterThanOrEqual(Date.parse(now) - 1)
})

test('a transaction released before its time ends at its original time', async () => {
  const id = await submit()
  const { doneAt } = await on.control('PATCH', `/transactions/${id}`, { hold: true })
  const letGo = await on.control('PATCH', `/transactions/${id}`, { hold: false })
  expect(letGo).toMatchObject({ held: false, doneAt })
  expect((await statusOf(`data/${id}`)).status).toBe('pending')
})

test('a held transaction can be finished', async () => {
  const id = await submit()
  await on.control('PATCH', `/transactions/${id}`, { hold: true })
  await on.control('PATCH', `/transactions/${id}`, { finish: 'failed', errorCode: 'E001' })
  expect(await statusOf(`data/${id}`)).toMatchObject({ status: 'failed', errorCode: 'E001' })
})

test('a finished transaction cannot be changed, and the message says when and how it ended', async () => {
  const id = await submit()
  await on.control('PATCH', `/transactions/${id}`, { finish: 'completed' })
  for (const patch of [{ finish: 'failed' }, { hold: true }])
    await expect(on.control('PATCH', `/transactions/${id}`, patch)).rejects.toThrow(
      /"status":409,"detail":"The transaction \S+ was completed at \S+Z\. A finished transaction cannot change\."/,
    )
  expect((await statusOf(`data/${id}`)).status).toBe('completed')
})

test('of ten concurrent requests to finish a transaction, exactly one succeeds, and polls see one end', async () => {
  for (let round = 0; round < 5; round += 1) {
    const id = await submit()
    const seen = new Set<string>()
    let isOver = false
    const poll = async () => {
      while (!isOver) seen.add((await statusOf(`data/${id}`)).status)
    }
    const end = async (finish: string) => (await on.call('PATCH', `/_sandbox/transactions/${id}`, { finish })).status
    const polling = [poll(), poll()]
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => end(n % 2 ? 'failed' : 'completed')))
    isOver = true
    await Promise.all(polling)
    seen.add((await statusOf(`data/${id}`)).status)
    seen.delete('pending')
    expect({ ends: seen.size, answers: answers.toSorted() }).toEqual({
      ends: 1,
      answers: [200, ...Array.from({ length: 9 }, () => 409)],
    })
  }
})

test('a poll past its time waits for a concurrent finish, so that no end is taken back', async () => {
  const id = await submit()
  const other = await on.database.pool.connect()
  await other.query('begin')
  await other.query('select from sandbox.transactions where id = $1 for update', [id])
  const told = on.call('PATCH', `/_sandbox/transactions/${id}`, { finish: 'failed' })
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  await until(
    () => on.database.pool.query(waiting),
    ({ rowCount }) => rowCount === 1,
  )
  await on.control('POST', '/clock', { advanceSeconds: 900 })
  const seen = statusOf(`data/${id}`)
  await Promise.race([seen, told])
  await other.query('rollback')
  other.release()
  await told
  expect((await statusOf(`data/${id}`)).status).toBe((await seen).status)
})

test('an order can be held and finished, but not failed', async () => {
  const id = await createOrder()
  await on.control('PATCH', `/orders/${id}`, { hold: true })
  await on.control('POST', '/clock', { advanceSeconds: 900 })
  expect((await statusOf(`orders/${id}`)).status).toBe('pending')
  await expect(on.control('PATCH', `/orders/${id}`, { finish: 'failed' })).rejects.toThrow('orders cannot fail')
  expect(await on.control('PATCH', `/orders/${id}`, { finish: 'completed' })).toMatchObject({
    orderId: id,
    held: false,
  })
  expect((await statusOf(`orders/${id}`)).status).toBe('completed')
  await expect(on.control('PATCH', `/orders/${id}`, { hold: true })).rejects.toThrow('"status":409')
})

test('an unknown id gets 404, and an invalid change 400', async () => {
  const patch = async (path: string, body: unknown) => (await on.call('PATCH', `/_sandbox${path}`, body)).status
  const known = await submit()
  expect([
    await patch('/transactions/none', { hold: true }),
    await patch('/orders/none', { hold: true }),
    await patch('/orders/00000000-0000-4000-8000-000000000000', { hold: true }),
    await patch(`/transactions/${known}`, {}),
    await patch(`/transactions/${known}`, { finish: 'completed', hold: true }),
    await patch(`/transactions/${known}`, { finish: 'completed', errorCode: 'E001' }),
    await patch(`/transactions/${known}`, { finish: 'archived' }),
    await patch(`/transactions/${known}`, 'no JSON'),
  ]).toEqual([404, 404, 404, 400, 400, 400, 400, 400])
})
