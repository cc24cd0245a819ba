import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrateLedger } from '../../src/ledger/migrations.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { type Harness, setup } from '../e2e/faults/harness.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { loadVersion, type Version } from '../support/loadVersion.ts'
import { until } from '../support/until.ts'

/*
 * What a version left behind (version-*, by pg_dump): a ledger with records in every state, three of them being asked for and one on the
 * wire when its daemon was killed, rows that it had not taken, and the service's own ledger. That of 0.2.0 has been through a failover
 * to which its daemon agreed by itself, and is paused by an operator.
 */

const common = {
  'done 0': 'completed',
  'done 1': 'completed',
  'done 2': 'completed',
  'by key': 'completed',
  unknown: 'rejected',
  cents: 'rejected',
  'fail:E001': 'failed',
  'given up': 'discarded',
  'no answer': 'uncertain',
  resolved: 'completed',
  'under way 0': 'accepted',
  'under way 1': 'accepted',
  'under way 2': 'accepted',
  'on the wire': 'queued', // the row does not change before a request is answered
  'waits 0': 'queued',
  'waits 1': 'queued',
  'not captured': 'new',
}
const ends = {
  'under way 0': 'completed',
  'under way 1': 'completed',
  'under way 2': 'completed',
  'on the wire': 'uncertain',
  'waits 0': 'completed',
  'waits 1': 'completed',
  'not captured': 'completed',
}
// The request on the wire had not reached the service when its daemon was killed, which no daemon can know.
const neverTaken = ['unknown', 'cents', 'given up', 'behind', 'on the wire']

interface Left {
  version: Version
  firstMigration: string
  submissions: number
  before: Record<string, string>
  after: Record<string, string>
}

const left: Left[] = [
  {
    version: '0.1.0',
    firstMigration: '0003_problem',
    submissions: 17,
    before: { ...common, behind: 'rejected', 'not captured, an order': 'new' },
    after: { ...common, ...ends, behind: 'rejected', 'not captured, an order': 'completed' },
  },
  {
    version: '0.2.0',
    firstMigration: '0032_binding',
    submissions: 18,
    before: { ...common, behind: 'queued', 'after the failover': 'completed' },
    after: { ...common, ...ends, behind: 'rejected', 'after the failover': 'completed' },
  },
]

describe.each(left)('$version', ({ version, firstMigration, submissions, before, after }) => {
  let ledger: TestDatabase
  let service: TestDatabase
  let harness: Harness

  beforeAll(async () => {
    ledger = await load('ledger')
    service = await load('service')
  })
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]()
    await ledger[Symbol.asyncDispose]()
    await service[Symbol.asyncDispose]()
  })

  async function load(what: 'ledger' | 'service'): Promise<TestDatabase> {
    const database = await createDatabase('template0')
    await loadVersion(database.url, version, what)
    return database
  }

  /** The status of each row, by the row's marker. */
  async function statuses(): Promise<Record<string, string>> {
    const { rows } = await ledger.pool.query<{ marker: string; status: string }>(
      `select payload->>'field2' as marker, status from outbox order by id`,
    )
    return Object.fromEntries(rows.map(({ marker, status }) => [marker, status]))
  }

  const pauses = async () => (await ledger.pool.query('select reason, detail from outboxd.pause')).rows

  test('its ledger migrates to this version, twice without harm, and keeps every record, event, poll and pause', async () => {
    const count = async () => {
      const { rows } = await ledger.pool.query(
        `select (select count(*) from outboxd.submission)::int as submissions,
           (select count(*) from outboxd.submission_event)::int as events,
           (select count(*) from pgboss.job where state in ('created', 'active', 'retry'))::int as polls`,
      )
      return rows[0]
    }
    const [had, paused] = [await count(), await pauses()]
    expect(had).toMatchObject({ submissions, polls: 3 })
    expect(paused).toEqual(
      version === '0.2.0' ? [{ reason: 'operator', detail: expect.stringContaining('upgrade') }] : [],
    )
    const applied = await migrateLedger(ledger.url)
    expect(applied[0]).toBe(firstMigration)
    await migrateOutbox(ledger.url, 'outbox')
    expect(await migrateLedger(ledger.url)).toEqual([])
    expect([await count(), await pauses()]).toEqual([had, paused])
    expect(await statuses()).toEqual(before)
    // A daemon of 0.2.0 that still runs does not go on by its own proof after a failover.
    const { rows } = await ledger.pool.query(
      `update outboxd.history set synchronous_until = now() + interval '1 minute' returning synchronous_until as until`,
    )
    expect(rows).toEqual([{ until: null }])
  })

  test('a daemon brings all its records to their ends, and sends none twice', async () => {
    // Makes the dump look as if it had stayed on its server, because a moved ledger is a suspected loss.
    await ledger.pool.query(
      `update outboxd.history h set system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid,
         ledger_oid = n.ledger_oid from outboxd.history_now() n`,
    )
    await ledger.pool.query(
      'update outboxd.outbox set database_name = current_database() where database_name is not null',
    )
    harness = await setup({ databaseUrl: service.url }, ledger.url)
    await harness.control('DELETE', 'faults')
    await harness.control('PATCH', 'settings', { processingTime: 'constant:0.1' })
    await harness.control('POST', 'clock', { advanceSeconds: 7_200 })
    await harness.start()
    await ledger.pool.query(`delete from outboxd.pause where reason = 'operator'`)
    const seen = await until(
      statuses,
      (now) => !Object.values(now).some((status) => ['new', 'queued', 'sending', 'accepted'].includes(status)),
    )
    expect(seen).toEqual(after)
    const { rows } = await service.pool.query<{ marker: string; times: number }>(
      `select coalesce(body::jsonb #>> '{data,field2}', 'not captured, an order') as marker, count(*)::int as times
       from sandbox.ledger where num_nonnulls(transaction_id, order_id) = 1 and method = 'POST' group by 1`,
    )
    expect(Object.fromEntries(rows.map(({ marker, times }) => [marker, times]))).toEqual(
      Object.fromEntries(
        Object.keys(before)
          .filter((marker) => !neverTaken.includes(marker))
          .map((marker) => [marker, 1]),
      ),
    )
  })
})
