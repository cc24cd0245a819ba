import { expect, test } from 'vitest'
import { cursorForms, insertKnownRows } from './cursorForms.ts'
import { anyRows, openClaim, setup } from './setup.ts'

for (const [name, form] of Object.entries(cursorForms)) {
  test(`${name}: many known rows after a stuck cursor do not hide new rows`, async () => {
    const { pool, capture, connect } = await setup(form)
    const late = await connect()
    await late.query('begin')
    await late.query('insert into source default values')
    await insertKnownRows(pool, 2, 45_001)
    await pool.query('insert into source default values')
    const taken = [await capture(), await capture()].flat()
    expect(taken).toEqual(['45002'])
    await late.query('commit')
    const later = [await capture(), await capture()].flat()
    expect(later).toEqual(['1'])
  })

  test(`${name}: many known rows after a row of another instance’s type do not hide new rows, and its type is reported`, async () => {
    const { pool, outbox } = await setup(form)
    await pool.query(`insert into source (type) values ('held')`)
    await insertKnownRows(pool, 2, 45_001)
    await pool.query('insert into source default values')
    const types = { known: ['data'], knownToOthers: ['held'] }
    const taken: string[] = []
    for (let n = 0; n < 2; n++) {
      await using claimed = await openClaim(outbox, { ...anyRows, types })
      expect(claimed.typesLeftToOthers).toEqual(['held'])
      taken.push(...claimed.outboxIds)
    }
    expect(taken).toEqual(['45002'])
  })

  test(`${name}: a row whose key had to wait is not overtaken when the scan continues after many known rows`, async () => {
    const { pool, capture } = await setup(form)
    await pool.query(`insert into source (key) values ('k')`)
    await insertKnownRows(pool, 2, 45_001)
    await pool.query(`insert into source (key) values ('k')`)
    expect(await capture(100, ['k'])).toEqual([])
    const taken = [await capture(), await capture(), await capture(), await capture()].flat()
    expect(taken).toEqual(['1', '45002'])
  })

  test(`${name}: a row that commits late is not overtaken when the scan continues after many known rows`, async () => {
    const { pool, capture, connect } = await setup(form)
    const late = await connect()
    await late.query(`begin; insert into source (key) values ('k')`)
    await insertKnownRows(pool, 2, 45_001)
    expect(await capture()).toEqual([])
    await late.query('commit')
    await pool.query(`insert into source (key) values ('k')`)
    const taken = [await capture(), await capture(), await capture(), await capture()].flat()
    expect(taken).toEqual(['1', '45002'])
  })

  test(`${name}: rows after many known rows are found, even if more than a batch waits for a skipped row`, async () => {
    const { pool, outbox } = await setup(form)
    await pool.query(`insert into source (key) values ('k')`)
    await insertKnownRows(pool, 2, 45_001)
    await pool.query(
      `insert into source (key) select 'k' from generate_series(1, 5); insert into source default values`,
    )
    const claim = async () => {
      const skipped = [{ outboxId: '1', isCaptured: false }]
      await using claimed = await openClaim(outbox, { ...anyRows, limit: 2, skipped })
      return claimed.outboxIds
    }
    expect([await claim(), await claim()]).toEqual([[], ['45007']])
  })

  test(`${name}: a row in conflict does not hold back its key after many known rows`, async () => {
    const { pool, outbox } = await setup(form)
    await pool.query(`insert into source (key) values ('stuck')`)
    await insertKnownRows(pool, 2, 45_001)
    await pool.query(`update source set key = 'k' where id = 45001; insert into source (key) values ('k')`)
    const claim = async () => {
      const skipped = [{ outboxId: '45001', isCaptured: false }]
      await using claimed = await openClaim(outbox, { ...anyRows, exceptKeys: ['stuck'], skipped })
      return claimed.outboxIds
    }
    expect([await claim(), await claim()]).toEqual([[], ['45002']])
  })
}
