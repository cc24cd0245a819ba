import { randomUUID } from 'node:crypto'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { tidyRequests } from '../../../src/ledger/budget.ts'
import type { LedgerHistory } from '../../../src/ledger/history/history.ts'
import { readHistory } from '../../../src/ledger/history/history.ts'
import { writeHeartbeat } from '../../../src/ledger/instances.ts'
import { createDatabase } from '../../support/database.ts'
import { claim, historyOf, openLedgerForFile, outcomeBatch, setLimit } from '../../support/ledger.ts'
import { backUpLedger, restoreLedger } from '../../support/ledgerBackup.ts'

const ledger = openLedgerForFile()
beforeEach(() => setLimit(ledger.pool, 10))

const query = (text: string, values: unknown[] = []) => ledger.pool.query(text, values)
const pauses = async () => (await query('select reason, until from outboxd.pause')).rows

/** A daemon's heartbeats. */
function daemon(standby: 'none' | 'synchronous' = 'none') {
  const instance = { id: randomUUID(), who: 'daemon', version: '1', host: 'h', settings: {} }
  const history = historyOf(ledger.pool, instance.id, standby)
  async function beat() {
    const answer = await writeHeartbeat(ledger.pool, instance, { lookedFor: history.lookFor() })
    history.note(answer.history, answer.beats)
    return history.runOnce()
  }
  async function beats(times: number) {
    for (let i = 0; i < times; i++) expect(await beat()).toEqual({ kind: 'none' })
  }
  return { instance, history, beat, beats }
}
const stands = (history: LedgerHistory) => history.stands(ledger.pool)

/** As `recover` does. */
const recovered = () =>
  query(
    `begin; delete from outboxd.pause; delete from outboxd.problem;
     update outboxd.ledger set lost_at = null, recovered_at = clock_timestamp(), written_by = pg_current_xact_id(),
       timeline = n.timeline, database_oid = n.database_oid, table_oid = n.table_oid, system_id = n.system_id
     from outboxd.history(null, null, null) n; commit`,
  )

test('the first daemon writes the identity of a new ledger', async () => {
  await using copy = await createDatabase()
  await copy.pool.query(
    'update outboxd.ledger set system_id = null, timeline = null, database_oid = null, table_oid = null',
  )
  const history = historyOf(copy.pool)
  expect(await readHistory(copy.pool)).toMatchObject({ isNew: true, difference: null })
  expect(await history.stands(copy.pool)).toBe(false)
  history.note(await readHistory(copy.pool), 1)
  expect(await history.runOnce()).toEqual({ kind: 'none' })
  expect(await history.stands(copy.pool)).toBe(true)
})

test.each([
  ['system_id', `'1'`, 'different server'],
  ['timeline', `'0000000A'`, 'new timeline'],
  ['database_oid', '1', 'different database'],
  ['table_oid', '1', 'created again'],
])('another %s pauses all until an operator recovers', async (column, value, detail) => {
  await ledger.capture([{}])
  const { beat, history } = daemon()
  expect(await beat()).toEqual({ kind: 'none' })
  await query(`update outboxd.ledger set ${column} = ${value}`)
  expect(await stands(history)).toBe(false)
  expect((await claim(ledger.dispatch(), { submissions: 1 })).submissions).toEqual([])
  expect(await ledger.dispatch().claimTokenRequest(1)).toBeNull()
  expect(await beat()).toEqual({ kind: 'lost', detail: expect.stringContaining(detail) })
  expect(await beat()).toEqual({ kind: 'none' })
  expect(await pauses()).toEqual([{ reason: 'history', until: null }])
  await recovered()
  expect(await beat()).toEqual({ kind: 'none' })
  expect(await stands(history)).toBe(true)
})

test('VACUUM, CLUSTER and locks of the ledger’s row are no loss, and later updates are noted', async () => {
  for (const statement of ['vacuum freeze', 'vacuum full', 'vacuum (full, freeze)'])
    await query(`${statement} outboxd.ledger`)
  await query('cluster outboxd.ledger using ledger_pkey')
  await query('select from outboxd.ledger for no key update')
  await query('update outboxd.ledger set settings_since = now()')
  await query(
    'begin; update outboxd.ledger set settings_since = now(); update outboxd.ledger set settings_since = null; commit',
  )
  expect(await stands(historyOf(ledger.pool))).toBe(true)
})

test('COPY of old rows pauses all, whatever updates the row afterwards', async () => {
  const backup = await backUpLedger(ledger.pool)
  await restoreLedger(ledger.pool, backup)
  await query('update outboxd.ledger set settings_since = now()')
  const { beat, history } = daemon()
  expect(await stands(history)).toBe(false)
  expect(await beat()).toEqual({ kind: 'lost', detail: expect.stringContaining('rows of a backup') })
})

test('a ledger whose row was deleted pauses all', async () => {
  const { beat, history } = daemon()
  await beat()
  await query('delete from outboxd.ledger')
  expect(await stands(history)).toBe(false)
  expect(await beat()).toMatchObject({ kind: 'lost' })
  expect(await pauses()).toEqual([{ reason: 'history', until: null }])
  await recovered()
})

test('a ledger that was created again pauses a daemon that knows the former one', async () => {
  const { beat, history } = daemon()
  await beat()
  await query('update outboxd.ledger set system_id = null, timeline = null, database_oid = null, table_oid = null')
  expect(await stands(history)).toBe(false)
  expect(await beat()).toEqual({ kind: 'lost', detail: 'the ledger was created again' })
})

test('a daemon that does not find its heartbeats pauses all; a crash may undo the last five', async () => {
  const { beat, beats, history, instance } = daemon()
  await beats(12)
  await query('update outboxd.instance set beats = beats - 5 where id = $1', [instance.id])
  expect(await beat()).toEqual({ kind: 'none' })
  await query('update outboxd.instance set beats = 2 where id = $1', [instance.id])
  expect(await stands(history)).toBe(false)
  expect(await beat()).toEqual({ kind: 'lost', detail: 'a heartbeat that a daemon had written is missing' })
})

test('a daemon whose row is gone has lost heartbeats', async () => {
  const { beat, beats, instance } = daemon()
  await beats(7)
  await query('delete from outboxd.instance where id = $1', [instance.id])
  expect(await beat()).toMatchObject({ kind: 'lost' })
})

test('a daemon that does not find its newest request claims nothing, and pauses all', async () => {
  await ledger.capture([{}, {}])
  const { beat, history, instance } = daemon()
  await beat()
  const dispatch = ledger.dispatch({ history, instance })
  expect((await claim(dispatch, { submissions: 1 })).submissions).toHaveLength(1)
  expect(await beat()).toEqual({ kind: 'none' })
  await query('delete from outboxd.request')
  expect((await claim(dispatch, { submissions: 1 })).submissions).toEqual([])
  expect(await beat()).toEqual({ kind: 'lost', detail: 'a request that a daemon had written is missing' })
})

test('a request that never left, or that another daemon tidies, is still found', async () => {
  await ledger.capture([{}])
  const { history, instance } = daemon()
  const dispatch = ledger.dispatch({ history, instance })
  const { submissions } = await claim(dispatch, { submissions: 1 })
  await dispatch.writeOutcomes(outcomeBatch({ unsentRequests: submissions.map(({ requestId }) => requestId) }))
  await tidyRequests(ledger.pool)
  expect(await stands(history)).toBe(true)
})

test('while the pause stands, a daemon forgets what it wrote', async () => {
  const { beat, beats, instance } = daemon()
  await beats(7)
  await query('update outboxd.ledger set lost_at = clock_timestamp()')
  expect(await beat()).toEqual({ kind: 'none' })
  await query('update outboxd.instance set beats = 1 where id = $1', [instance.id])
  await recovered()
  expect(await beat()).toEqual({ kind: 'none' })
  expect(await pauses()).toEqual([])
})

test('a daemon that did not see the pause forgets what it wrote before a recover', async () => {
  const { beat, beats, instance } = daemon()
  await beats(7)
  await query('update outboxd.instance set beats = 1 where id = $1', [instance.id])
  await recovered()
  expect(await beat()).toEqual({ kind: 'none' })
})

test('a declared standby’s timeline is taken by a daemon that knows the old one, not by a new one', async () => {
  const [old, young] = [daemon('synchronous'), daemon('synchronous')]
  await old.beats(2)
  const promote = () => query(`update outboxd.ledger set timeline = '0000000A'`)
  await promote()
  expect(await young.beat()).toEqual({ kind: 'none' })
  expect(await young.history.stands(ledger.pool)).toBe(false)
  expect(await old.beat()).toEqual({ kind: 'promoted' })
  expect(await stands(young.history)).toBe(true)
  expect(await pauses()).toEqual([{ reason: 'standby', until: null }]) // none is there
})

test('with LEDGER_STANDBY=synchronous nothing is claimed while COMMITs do not wait, and a pause says so', async () => {
  await ledger.capture([{}])
  const { beat, history, instance } = daemon('synchronous')
  await beat()
  expect(await pauses()).toEqual([{ reason: 'standby', until: null }])
  expect((await claim(ledger.dispatch({ history, instance }), { submissions: 1 })).submissions).toEqual([])
  await query(`update outboxd.pause set detail = 'told once'`)
  await beat()
  expect((await query('select detail from outboxd.pause')).rows).toEqual([{ detail: 'told once' }])

  onTestFinished(async () => void (await ledger.reset()))
  await daemon().beat()
  expect(await pauses()).toEqual([])
  expect((await claim(ledger.dispatch(), { submissions: 1 })).submissions).toHaveLength(1)
})
