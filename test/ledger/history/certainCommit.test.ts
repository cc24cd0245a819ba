import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { CommitUncertain, createPool, inTransaction } from '../../../src/postgres/database.ts'
import { historyOf, type Ledger, openLedger, setLimit } from '../../support/ledger.ts'
import { type EmbeddedPostgres, migrateAll, openPool, startPostgres } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'
import { waitForStandby } from '../../support/waitForStandby.ts'

/** A claim's COMMIT waits for a synchronous standby that is away, until the test ends the wait. */

let server: EmbeddedPostgres
let ledger: Ledger
/** A session whose own COMMITs wait for no standby. */
let operator: pg.Pool
beforeAll(async () => {
  server = await startPostgres({ fsync: 'off' })
  await migrateAll(server.url)
  ledger = await openLedger(server.url)
  operator = openPool(server.url, { max: 1, options: '-c synchronous_commit=local' })
})
afterAll(async () => {
  await operator.end()
  await ledger[Symbol.asyncDispose]()
  await server.stop()
})
beforeEach(async () => {
  await ledger.reset()
  await setLimit(ledger.pool)
  await waitFor('')
})

const waitFor = (names: string) =>
  waitForStandby(
    names,
    (text) => operator.query(text),
    (text) => ledger.pool.query(text),
  )

const hanging = async () => {
  const { rows } = await operator.query<{ pid: number }>(
    `select pid from pg_stat_activity where wait_event = 'SyncRep'`,
  )
  return rows.map(({ pid }) => pid)
}

/** Sessions learn of the standby at once, but COMMITs wait only once the checkpointer knows it, which may take seconds. */
const commitsHang = () =>
  until(
    async () => {
      let isThrough = false
      const probe = ledger.pool.query(`select pg_logical_emit_message(true, 'probe', '')`).finally(() => {
        isThrough = true
      })
      const [pid] = await until(hanging, ({ length }) => length > 0 || isThrough)
      if (pid !== undefined) await operator.query('select pg_cancel_backend($1)', [pid])
      await probe
      return pid
    },
    (pid) => pid !== undefined,
  )

/** Claims the one record that waits, ends the wait of its COMMIT, and expects that the record is not sent. */
async function claimAndLetGo(letGo: (pid: number) => Promise<unknown>): Promise<void> {
  const [id] = await ledger.capture([{}])
  onTestFinished(() => waitFor(''))
  await waitFor('gone')
  await commitsHang()
  const instance = { id: randomUUID(), who: 'test' }
  const history = historyOf(ledger.pool, instance.id, 'synchronous')
  const dispatch = ledger.dispatch({ history, instance })
  const claimId = randomUUID()
  let taken = 0
  const request = { id: claimId, submissions: 1, polls: 0, rarePolls: 0, trial: false }
  const claiming = dispatch.claim(request, (submissions) => {
    taken = submissions.length
  })
  const refused = expect(claiming).rejects.toThrow(CommitUncertain)
  const [pid = 0] = await until(hanging, ({ length }) => length === 1)
  await letGo(pid)
  await refused
  expect(taken).toBe(1)
  expect((await ledger.read(id as string)).state).toBe('sending')
  await waitFor('')
  expect(await dispatch.requeueUnsentClaim(claimId, [id as string])).toBe(true)
  expect((await ledger.read(id as string)).state).toBe('queued')
}

test('a claim whose COMMIT is cancelled is given back, not sent', () =>
  claimAndLetGo((pid) => operator.query('select pg_cancel_backend($1)', [pid])))

test('a claim whose COMMIT ends because the server no longer waits for a standby is given back, not sent', () =>
  claimAndLetGo(() => waitFor('')))

test.each([
  ['off', 'local'],
  ['local', 'local'],
  ['remote_apply', 'remote_apply'],
])('our transactions commit to disk: synchronous_commit %s becomes %s within them', async (set, within) => {
  const settings = { synchronous_commit: set }
  const pool = createPool({
    url: server.url,
    name: 'test',
    connections: 1,
    onIdleError: () => {},
    durable: true,
    settings,
  })
  onTestFinished(() => pool.end())
  const { rows } = await inTransaction(pool, (db) => db.query('show synchronous_commit'))
  expect(rows).toEqual([{ synchronous_commit: within }])
})
