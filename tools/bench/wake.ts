import pg from 'pg'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { startBenchDaemon } from './harness/benchDaemon.ts'
import { startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { percentile, printTable, say, sayWhere, verdict } from './harness/report.ts'
import { startMemoryService } from './harness/startMemoryService.ts'

const options = readOptions(
  'bench:wake: what the trigger that wakes the daemon costs the ERP if all its sessions insert at once.',
  {
    writers: { default: '16', help: 'sessions' },
    seconds: { default: '4', help: 'length of each measurement' },
    rounds: { default: '5', help: 'rounds' },
  },
)
const writers = Number(options.writers)
const seconds = Number(options.seconds)
const rounds = Number(options.rounds)

const triggers = ['none', 'this one', 'always'] as const
type Trigger = (typeof triggers)[number]

sayWhere('bench:wake')
say(
  `${writers} sessions, each inserting a row and committing it, again and again, ${seconds} s at a time, beside a running daemon: ` +
    'without a trigger, with the one that notifies where the daemon sleeps, and with the one that always notifies (as it was ' +
    `before). In turns, ${rounds} rounds, the order turned each time; each is compared with its round's run without a trigger.`,
)

await using postgres = await startBenchPostgres()
await using service = await startMemoryService(200)
const database = await postgres.createDatabase('wake')
await using _daemon = await startBenchDaemon({
  databaseUrl: database.url,
  serviceUrl: service.url,
  env: { RATE_LIMIT_REQUESTS: '10000' },
})
const sessions = await Promise.all(Array.from({ length: writers }, () => connect()))
const listener = await connect()
let notices = 0
listener.on('notification', () => {
  notices += 1
})
await listener.query('listen outboxd_outbox')

const commits: Record<Trigger, number[]> = { none: [], 'this one': [], always: [] }
const notified: Record<Trigger, number[]> = { none: [], 'this one': [], always: [] }
await measure('none') // warms caches and connections
for (let round = 0; round < rounds; round++)
  for (let turn = 0; turn < triggers.length; turn++) {
    const trigger = triggers[(round + turn) % triggers.length] as Trigger
    const { perSecond, noticesPerSecond } = await measure(trigger)
    commits[trigger].push(perSecond)
    notified[trigger].push(noticesPerSecond)
  }
await Promise.all([...sessions, listener].map((client) => client.end()))

const ratios = (trigger: Trigger) => commits[trigger].map((perSecond, round) => perSecond / (commits.none[round] ?? 0))
const median = (values: number[]) => percentile(values, 0.5)
printTable(
  ['trigger', 'commits a second, median', 'least', 'most', 'of those without, median', 'NOTIFY a second'],
  triggers.map((trigger) => [
    trigger,
    ...[median(commits[trigger]), Math.min(...commits[trigger]), Math.max(...commits[trigger])].map((n) =>
      n.toFixed(0),
    ),
    `${(100 * median(ratios(trigger))).toFixed(0)} %`,
    median(notified[trigger]).toFixed(0),
  ]),
)
say(`${writers} writers lose under 10 %: ${verdict(median(ratios('this one')) > 0.9)}.`)

async function measure(trigger: Trigger): Promise<{ perSecond: number; noticesPerSecond: number }> {
  await install(trigger)
  await database.pool.query(`delete from outbox where status = 'new'`)
  await database.pool.query('checkpoint')
  const noticesBefore = notices
  const beganMs = performance.now()
  const untilMs = beganMs + seconds * 1_000
  const counts = await Promise.all(sessions.map((session) => insertUntil(session, untilMs)))
  const elapsed = (performance.now() - beganMs) / 1_000
  const perSecond = counts.reduce((sum, count) => sum + count, 0) / elapsed
  return { perSecond, noticesPerSecond: (notices - noticesBefore) / elapsed }
}

async function install(trigger: Trigger): Promise<void> {
  await migrateOutbox(database.url, 'outbox', trigger !== 'none')
  if (trigger === 'always')
    await database.pool.query(
      `create or replace function outboxd_wake() returns trigger language plpgsql as $$
       begin perform pg_notify('outboxd_outbox', ''); return null; end $$`,
    )
}

async function insertUntil(session: pg.Client, untilMs: number): Promise<number> {
  let count = 0
  while (performance.now() < untilMs) {
    await session.query({
      name: 'insert',
      text: `insert into outbox (type, payload) values ('data', '{"customerId": "C1",
        "orderDate": "2026-11-21T10:00:00Z", "amount": 12.5, "field1": "value1", "field2": "bench"}')`,
    })
    count += 1
  }
  return count
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(database.url)
  await client.connect()
  return client
}
