import { createServer } from 'node:net'
import { readOnly } from '../../test/support/readOnly.ts'
import { createClockEnvironment, explainMissingHostClock, setHostClock } from './hostClock.ts'
import type { Site, SiteOptions } from './site.ts'
import { explainMissingSmallDisk } from './smallDisk.ts'

/** A fault of the night, and the alerts that must report it. */
export interface Fault {
  name: string
  /** What the fault does, for the table. */
  what: string
  /** What the site of this fault needs. */
  site?: Partial<SiteOptions>
  /** Returns why this machine cannot cause the fault; null if it can. */
  whyImpossible?: () => string | null
  begin(site: Site): Promise<void>
  /** One of these alerts must report the fault: the alert's name, after a slash its kind or reason. */
  alerts: readonly string[]
  /** Further alerts that are right, because each needs a different action. */
  also?: readonly string[]
  /** Words for the cause in the alert's text, in the runbook's section and in the first line of `outboxd status`. */
  cause: { text: RegExp; runbook: RegExp; status: RegExp }
}

/** Longer than a test lasts. */
const neverMs = 3_600_000

export const faults: readonly Fault[] = [
  {
    name: 'E003',
    what: 'the service answers E003',
    begin: (site) => site.change({ down: true }),
    alerts: ['OutboxdPaused/unavailable'],
    cause: { text: /says that it is (unavailable|down)/, runbook: /E003/, status: /service says that it is down/ },
  },
  {
    name: 'wrong-secret',
    what: 'the secret is wrong',
    begin: (site) => site.restart({ SERVICE_CLIENT_SECRET: 'of-another-environment' }),
    alerts: ['OutboxdUnauthorized'],
    cause: { text: /secret/, runbook: /\*Secret\*/, status: /refuses our sign-in/ },
  },
  {
    name: 'not-allow-listed',
    what: 'our address left the service’s list',
    begin: (site) => site.change({ allowedAddresses: ['192.0.2.1'] }),
    alerts: ['OutboxdUnauthorized'],
    cause: { text: /allow-list/, runbook: /address/, status: /refuses our sign-in/ },
  },
  {
    name: 'slow',
    what: 'each answer takes 2.5 s',
    begin: (site) => site.fault({ kind: 'delay', delayMs: 2_500 }),
    alerts: ['OutboxdServiceSlow'],
    cause: { text: /longer than 2 s/, runbook: /longer than 2 seconds/, status: /2 s/ },
  },
  {
    name: 'timeouts',
    what: 'the service does not answer',
    begin: (site) => site.fault({ kind: 'delay', delayMs: neverMs, when: 'before' }),
    alerts: ['OutboxdServiceFailing', 'OutboxdPaused/unreachable'],
    also: ['OutboxdUncertain'],
    cause: {
      text: /no answer/,
      runbook: /timeouts|not answered/,
      status: /service cannot be reached/,
    },
  },
  {
    name: 'service-gone',
    what: 'the service’s port is closed',
    begin: (site) => site.closeService(),
    alerts: ['OutboxdPaused/unreachable', 'OutboxdServiceFailing'],
    also: ['OutboxdUncertain'],
    cause: {
      text: /cannot reach the service|connection is lost/,
      runbook: /no connection/,
      status: /service cannot be reached/,
    },
  },
  {
    name: 'postgres-stopped',
    what: 'Postgres is stopped',
    site: { ownServer: true },
    begin: (site) => site.postgres.stop(),
    alerts: ['OutboxdDatabaseDown'],
    cause: { text: /database of the (outbox|ledger) does not answer/, runbook: /database/, status: /connect/ },
  },
  {
    name: 'daemon-killed',
    what: 'kill -9, without a restart',
    begin: async (site) => site.daemon().signal('SIGKILL'),
    alerts: ['OutboxdAbsent'],
    cause: { text: /No outboxd is running as the job/, runbook: /Start the daemon/, status: /No daemon is running/ },
  },
  {
    name: 'E001',
    what: '100 unknown customers',
    begin: (site) => site.erp.insert(100, 'UNKNOWN1'),
    alerts: ['OutboxdRecordsFailing'],
    cause: { text: /data or a mapping/, runbook: /E001/, status: /need attention \(100 rejected\)/ },
  },
  {
    name: 'limit-lower',
    what: 'the service allows 30 requests a minute, not 100',
    async begin(site) {
      await site.change({ rateLimitRequests: 30 })
      site.erp.setPace(10)
    },
    alerts: ['OutboxdThrottled'],
    cause: {
      text: /allows less than RATE_LIMIT_REQUESTS/,
      runbook: /RATE_LIMIT_REQUESTS/,
      status: /asks too often|budget/,
    },
  },
  {
    name: 'garbage',
    what: 'answers cannot be read',
    begin: (site) => site.fault({ kind: 'garbage', endpoint: 'submit' }),
    alerts: ['OutboxdContractBreach/unreadable_answer'],
    also: ['OutboxdUncertain', 'OutboxdPaused/unreachable'],
    cause: {
      text: /interface does not allow/,
      runbook: /unreadable_answer/,
      status: /needs? attention|something else answers/,
    },
  },
  {
    name: 'outbox-locked',
    what: 'a session locks the outbox’s table',
    async begin(site) {
      const client = await site.pool.connect()
      site.atEnd(() => client.release(true))
      await client.query('begin; lock table outbox in access exclusive mode')
    },
    alerts: ['OutboxdLoopStalled'],
    also: ['OutboxdProblem/loop_failing'],
    cause: { text: /lock/, runbook: /A lock/, status: /table is locked by/ },
  },
  {
    name: 'read-only',
    what: 'the database is read-only',
    async begin(site) {
      const writable = await readOnly(site.pool)
      site.atEnd(async () => writable[Symbol.asyncDispose]())
      await site.pool.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      )
    },
    alerts: ['OutboxdLoopStalled'],
    cause: { text: /read-only|be written/, runbook: /read-only/, status: /read-only|be written/ },
  },
  {
    name: 'poison-row',
    what: 'a trigger refuses writes to one row',
    async begin(site) {
      await site.pool.query(`
        create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
        create trigger refuse before update on outbox for each row when (old.payload ->> 'customerId' = 'POISON')
          execute function refuse()`)
      await site.erp.insert(1, 'POISON')
    },
    alerts: ['OutboxdProblem/row_skipped'],
    also: ['OutboxdProblem/report_refused', 'OutboxdReportsLate'],
    cause: { text: /row/, runbook: /row_skipped/, status: /skips 1 row/ },
  },
  {
    name: 'clock',
    what: 'the host’s clock goes back an hour',
    site: { env: createClockEnvironment },
    whyImpossible: explainMissingHostClock,
    begin: (site) => setHostClock(site.folder, -3_600),
    alerts: ['OutboxdProblem/clock_off'],
    cause: { text: /clock/, runbook: /clock_off/, status: /clock is off/ },
  },
  {
    name: 'port-taken',
    what: 'the daemon’s port is taken',
    async begin(site) {
      await site.daemon().stop()
      const squatter = createServer((socket) => socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'))
      squatter.listen(site.port, '127.0.0.1')
      site.atEnd(() => void squatter.close())
      await site.restartInVain()
    },
    alerts: ['OutboxdAbsent'],
    cause: { text: /No outboxd is running/, runbook: /last lines of the log/, status: /No daemon is running/ },
  },
  {
    name: 'full-disk',
    what: 'the tables’ disk is full',
    site: { smallDisk: true },
    whyImpossible: explainMissingSmallDisk,
    begin: async (site) => site.disk?.fill(),
    alerts: ['OutboxdLoopStalled'],
    cause: { text: /disk/, runbook: /disk/, status: /disk|written/ },
  },
]
