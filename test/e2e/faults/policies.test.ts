import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

async function started(
  env: Record<string, string>,
  idempotency: 'e002' | 'replay' | 'ignore' = 'e002',
): Promise<Harness> {
  const harness = await setup({ idempotency })
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.start(env)
  return harness
}

/** Creates mappings whose requests contain the submission's id as the transaction's id. */
async function mappingsWithOwnId(harness: Harness): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'outboxd-mappings-'))
  const text = await readFile(join(harness.env.MAPPINGS_DIR ?? '', 'data.yaml'), 'utf8')
  await writeFile(join(dir, 'data.yaml'), text.replace(/^list:/m, `  transactionId: \${submission.id}\nlist:`))
  return dir
}

test('`resend`, and the service knows keys: sent again, one effect', async () => {
  const harness = await started({ UNCERTAIN_POLICY: 'resend' }, 'replay')
  await harness.fault({ kind: 'drop', when: 'after', endpoint: 'submit', times: 1 })
  await harness.insert('resent-')
  const outcome = await harness.becomes('resent-', 'completed')
  expect(outcome).toMatchObject({ posts: [null, 200], effects: 1, attempt: 2 })
  expect(new Set(outcome.keys).size).toBe(1)
})

test('`resend`, and E002 to the repeat: uncertain', async () => {
  const harness = await started({ UNCERTAIN_POLICY: 'resend' }, 'e002')
  await harness.fault({ kind: 'drop', when: 'after', endpoint: 'submit', times: 1 })
  await harness.insert('known-')
  expect(await harness.becomes('known-', 'uncertain')).toMatchObject({ code: 'E002', posts: [null, 409], effects: 1 })
})

test('`probe`, it had arrived: found by its id, one request', async () => {
  const harness = await setup({ idempotency: 'ignore' })
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.start({ UNCERTAIN_POLICY: 'probe', MAPPINGS_DIR: await mappingsWithOwnId(harness) })
  await harness.fault({ kind: 'drop', when: 'after', endpoint: 'submit', times: 1 })
  await harness.insert('arrived-')
  expect(await harness.becomes('arrived-', 'completed')).toMatchObject({ posts: [null], effects: 1 })
})

test('`probe`, it had not arrived: sent again, one effect', async () => {
  const harness = await setup({ idempotency: 'ignore' })
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.start({ UNCERTAIN_POLICY: 'probe', MAPPINGS_DIR: await mappingsWithOwnId(harness) })
  await harness.fault({ kind: 'drop', when: 'before', endpoint: 'submit', times: 1 })
  await harness.insert('absent-')
  await until(
    () => harness.pool.query('select from outboxd.submission where probing and unknown_since is not null'),
    ({ rowCount }) => rowCount === 1,
  )
  // A minute passes.
  await harness.pool.query(`update outboxd.submission set unknown_since = unknown_since - interval '61 seconds'`)
  expect(await harness.becomes('absent-', 'completed')).toMatchObject({ posts: [null, 200], effects: 1 })
})

test('under `probe` a record whose mapping sends no id is uncertain', async () => {
  const harness = await started({ UNCERTAIN_POLICY: 'probe' })
  await harness.fault({ kind: 'drop', endpoint: 'submit', times: 1 })
  await harness.insert('no-id-')
  expect(await harness.becomes('no-id-', 'uncertain')).toMatchObject({ posts: [null] })
})

test('`SERVER_ERRORS=hold`, and 500 after the record was stored: uncertain, one request, one effect', async () => {
  const harness = await started({ SERVER_ERRORS: 'hold', UNCERTAIN_POLICY: 'resend' }, 'ignore')
  await harness.fault({ kind: 'answer', status: 500, when: 'after', endpoint: 'submit', times: 1 })
  await harness.insert('stored-')
  expect(await harness.becomes('stored-', 'uncertain')).toMatchObject({ posts: [500], effects: 1 })
})

test('successors of an uncertain record: they wait, others do not', async () => {
  const harness = await started({})
  await harness.fault({ kind: 'drop', endpoint: 'submit', times: 1 })
  await harness.insert('first-', { key: 'k' })
  await harness.becomes('first-', 'uncertain')
  await harness.insert('second-', { key: 'k' })
  await harness.insert('other-', { key: 'l' })
  await harness.becomes('other-', 'completed')
  expect(await harness.outcome('second-')).toMatchObject({ posts: [], attempt: 0 })
})
