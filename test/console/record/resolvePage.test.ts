import { describe, expect, test } from 'vitest'
import { openFixtureForFile, uncertain } from '../../commands/fixture.ts'
import { openForFile } from '../../support/openForFile.ts'
import { openConsole } from '../openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

const rowOf = (id: string) => fixture.ledger.row(id)

/** Resolves a record with the form of its page. */
async function resolve(id: string, fields: Record<string, string | readonly string[]>) {
  const { revision } = await rowOf(id)
  return served.post(`/records/${id}/resolve`, { revision: String(revision), ...fields })
}

describe('an operator’s answer about a record', () => {
  test('is previewed, then carried out when it is confirmed', async () => {
    const id = await fixture.end(uncertain, { outboxId: '1' })
    const preview = await resolve(id, { answer: 'not-arrived' })
    expect(preview.text).toContain('This would send it again, under its idempotency key')
    expect(preview.text).toContain('If it did arrive, the service may have it twice')
    expect((await rowOf(id)).state).toBe('uncertain')
    const done = await resolve(id, { answer: 'not-arrived', confirmed: 'on', reason: 'asked them' })
    expect(done).toMatchObject({ status: 303, headers: { location: `/records/${id}` } })
    expect((await rowOf(id)).state).toBe('queued')
  })

  test('can be that it arrived, unchecked, and can be taken back', async () => {
    const id = await fixture.end(uncertain, { outboxId: '1' })
    const arrived = { answer: 'arrived', transaction: ' tx-7 ', unchecked: 'on' }
    expect((await resolve(id, arrived)).text).toContain('Track outbox:1 as tx-7, without asking the service?')
    await resolve(id, { ...arrived, confirmed: 'on' })
    expect(await rowOf(id)).toMatchObject({ state: 'accepted', transaction_id: 'tx-7' })
    await resolve(id, { answer: 'take-back', confirmed: 'on' })
    expect(await rowOf(id)).toMatchObject({ state: 'uncertain', transaction_id: null })
  })

  test('is refused with the reason if the service cannot be asked, the record has changed, or the form is incomplete', async () => {
    const id = await fixture.end(uncertain, { outboxId: '1' })
    const unasked = await resolve(id, { answer: 'arrived', transaction: 'tx-7', confirmed: 'on' })
    expect(unasked).toMatchObject({
      status: 409,
      text: expect.stringContaining('the service cannot be asked'),
    })
    expect(unasked.text).toContain('add --unchecked')
    const late = await served.post(`/records/${id}/resolve`, { revision: '0', answer: 'not-arrived', confirmed: 'on' })
    expect(late).toMatchObject({ status: 409, text: expect.stringContaining('has changed since this page') })
    for (const transaction of [' ', ['tx-7', 'tx-8']]) {
      expect((await resolve(id, { answer: 'arrived', transaction })).text).toContain('name="transaction" required')
      expect((await resolve(id, { answer: 'arrived', transaction, confirmed: 'on' })).status).toBe(409)
    }
    expect((await resolve(id, { answer: 'not-arrived', reason: ['one', 'another'] })).status).toBe(200)
    expect((await rowOf(id)).state).toBe('uncertain')
    const completed = await fixture.end({ state: 'completed' }, { outboxId: '2' })
    expect(await resolve(completed, { answer: 'not-arrived', confirmed: 'on' })).toMatchObject({ status: 409 })
  })
})
