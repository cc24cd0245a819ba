import { expect, test } from 'vitest'
import type { RowsRequest } from '../../src/model/outbox.ts'
import { anyRows, openClaim, openClaimOfRow, setup } from './setup.ts'
import { tableForms } from './tableForms.ts'

/** Rows that a claim leaves, and the rows that these hold back, for each way to know which rows wait. */

for (const [name, form] of Object.entries(tableForms)) {
  const claim = async (values: string, request: Partial<RowsRequest>) => {
    const { pool, outbox } = await setup(form)
    await pool.query(`insert into source (type, key) values ${values}`)
    await using claimed = await openClaim(outbox, { ...anyRows, ...request })
    return claimed
  }

  test(`${name}: rows are claimed in the order of their ids, however they were inserted`, async () => {
    const { pool, outbox } = await setup(form)
    await pool.query(`insert into source (id, key) overriding system value
      select n, case when n % 2 = 0 then 'k' end from generate_series(12, 1, -1) n`)
    await using claimed = await openClaim(outbox, { ...anyRows, limit: 11 })
    expect(claimed.outboxIds).toEqual(Array.from({ length: 11 }, (_, i) => String(i + 1)))
  })

  test(`${name}: a skipped row holds back only later rows of its key`, async () => {
    const values = `('data', 'k'), ('data', 'k'), ('data', 'k'), ('data', null), ('data', 'l')`
    const skippedIds = ['2']
    expect((await claim(values, { skippedIds })).outboxIds).toEqual(['1', '4', '5'])
  })

  test(`${name}: a skipped id that does not fit the id column holds back nothing`, async () => {
    const skippedIds = ['INV-2']
    expect((await claim(`('data', 'k'), ('data', 'k')`, { skippedIds })).outboxIds).toEqual(['1', '2'])
  })

  test(`${name}: a row of a held type is not taken, and holds back later rows of its key`, async () => {
    const values = `('data', 'k'), ('order', 'k'), ('data', 'k'), ('invoice', null), ('data', 'l')`
    expect((await claim(values, { heldTypes: ['order'] })).outboxIds).toEqual(['1', '4', '5'])
  })

  test(`${name}: at most keyRowsMax rows of one key are claimed`, async () => {
    const values = `('data', 'l'), ${`('data', 'k'), `.repeat(20)}('data', null)`
    const claimed = await claim(values, { limit: 5, keyRowsMax: 2 })
    expect([claimed.outboxIds, claimed.hasMore]).toEqual([['1', '2', '3'], true])
  })

  test(`${name}: a row is claimed by its id only while it waits`, async () => {
    const { pool, outbox, capture } = await setup(form)
    await pool.query('insert into source default values')
    const one = async (id: string) => {
      await using claimed = await openClaimOfRow(outbox, id)
      return claimed.outboxIds
    }
    expect(await one('1')).toEqual(['1'])
    expect(await one('2')).toEqual([])
    await capture()
    expect(await one('1')).toEqual([])
  })

  test(`${name}: a row is not claimed by its id behind earlier rows of its key, or while its key is closed`, async () => {
    const { pool, outbox, capture } = await setup(form)
    const isClaimed = async (id: string) => {
      await using claimed = await openClaimOfRow(outbox, id, ['closed'])
      return claimed.outboxIds.length > 0
    }
    await pool.query(`insert into source (key) values ('k'), ('l'), ('k'), (null), ('closed')`)
    const claimed: boolean[] = []
    for (const id of ['1', '2', '3', '4', '5']) claimed.push(await isClaimed(id))
    expect(claimed).toEqual([true, true, false, true, false])
    await capture(1)
    expect(await isClaimed('3')).toBe(true)
  })
}
