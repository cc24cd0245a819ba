import { expect, test } from 'vitest'
import type { RowsRequest } from '../../src/model/outbox.ts'
import { hasToWaitForKey } from '../../src/outbox/claimRows.ts'
import { anyRows, openClaim, openClaimOfRow, setup } from './setup.ts'
import { marked, tableForms } from './tableForms.ts'

/** Rows that a claim leaves, and the rows that these hold back, for each way to know which rows wait. */

for (const [name, form] of Object.entries(tableForms)) {
  const claim = async (values: string, request: Partial<RowsRequest>) => {
    const { pool, outbox } = await setup(form)
    await pool.query(`insert into source (type, key) values ${values}`)
    await using claimed = await openClaim(outbox, { ...anyRows, ...request })
    return claimed
  }

  test(`${name}: a skipped row holds back only later rows of its key`, async () => {
    const values = `('data', 'k'), ('data', 'k'), ('data', 'k'), ('data', null), ('data', 'l')`
    const skipped = [{ outboxId: '2', isCaptured: false }]
    expect((await claim(values, { skipped })).outboxIds).toEqual(['1', '4', '5'])
  })

  test(`${name}: a skipped id that does not fit the id column holds back nothing`, async () => {
    const skipped = [{ outboxId: 'INV-2', isCaptured: false }]
    expect((await claim(`('data', 'k'), ('data', 'k')`, { skipped })).outboxIds).toEqual(['1', '2'])
  })

  test(`${name}: a row of a held type is not taken, and holds back later rows of its key`, async () => {
    const values = `('data', 'k'), ('order', 'k'), ('data', 'k'), ('invoice', null), ('data', 'l')`
    expect((await claim(values, { heldTypes: ['order'] })).outboxIds).toEqual(['1', '4', '5'])
  })

  test(`${name}: at most keyRowsMax rows of one key are claimed, and rows of other keys fill the limit`, async () => {
    const values = `${`('data', 'k'), `.repeat(20)}('data', 'l'), ('data', null)`
    expect((await claim(values, { limit: 5, keyRowsMax: 2 })).outboxIds).toEqual(['1', '2', '21', '22'])
  })

  test(`${name}: a row is claimed by its id only while it waits`, async () => {
    const { pool, outbox, capture } = await setup(form)
    await pool.query('insert into source default values')
    const one = async (id: string) => {
      await using claimed = await openClaimOfRow(outbox, id)
      return claimed.outboxIds
    }
    expect(await one('1')).toEqual(['1'])
    for (const none of ['2', 'INV-2']) expect(await one(none)).toEqual([])
    await capture()
    expect(await one('1')).toEqual([])
  })

  test(`${name}: a row has to wait for earlier rows of its key, and while its key is closed`, async () => {
    const { pool, outbox, capture } = await setup(form)
    const order = { exceptKeys: ['closed'], skipped: [] }
    const waits = (id: string) => hasToWaitForKey(outbox, id, order)
    await pool.query(`insert into source (key) values ('k'), ('l'), ('k'), (null), ('closed')`)
    expect(await Promise.all(['1', '2', '3', '4', '5', '6', 'INV-2'].map(waits))).toEqual([
      ...[false, false, true, false, true],
      ...[false, false],
    ])
    await capture(1)
    expect(await waits('3')).toBe(false)
  })
}

test('a captured row whose mark is refused holds back no other row', async () => {
  const { pool, outbox } = await setup(marked)
  await pool.query(`insert into source (key) values ('k'), ('k')`)
  await using claimed = await openClaim(outbox, { ...anyRows, skipped: [{ outboxId: '1', isCaptured: true }] })
  expect(claimed.outboxIds).toEqual(['2'])
})
