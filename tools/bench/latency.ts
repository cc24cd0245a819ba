import { setTimeout as pause } from 'node:timers/promises'
import { startBenchDaemon } from './harness/benchDaemon.ts'
import { startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { percentile, printTable, say, sayWhere, verdict } from './harness/report.ts'
import { startMemoryService } from './harness/startMemoryService.ts'

const options = readOptions(
  'bench:latency: time from the commit of an outbox row to the first byte of its request at the service, if the daemon is idle.',
  {
    records: { default: '150', help: 'records, each committed alone' },
  },
)
const records = Number(options.records)
const gapMinMs = 50
const gapMaxMs = 350

sayWhere('bench:latency')
say(
  `${records} records, each committed alone, ${gapMinMs} to ${gapMaxMs} ms apart at random. The service reads the first byte ` +
    'on the same machine.',
)

await using postgres = await startBenchPostgres()
await using service = await startMemoryService(200, { keepsArrivals: true })
const database = await postgres.createDatabase('latency')
await using _daemon = await startBenchDaemon({
  databaseUrl: database.url,
  serviceUrl: service.url,
  env: { RATE_LIMIT_REQUESTS: '10000' },
})
await insertOne('warm-up')
await pause(2_000)

const committed: { name: string; beforeMs: number; afterMs: number }[] = []
for (let i = 0; i < records; i++) {
  await pause(gapMinMs + Math.random() * (gapMaxMs - gapMinMs))
  const name = `record ${i} of ${records}.`
  committed.push({ name, ...(await insertOne(name)) })
}
await pause(1_000)

const arrivals = (await (await fetch(`${service.url}/_bench/arrivals`)).json()) as { atMs: number; body: string }[]
const arrivedAtMs = new Map(arrivals.map(({ atMs, body }) => [field2Of(body), atMs]))
const since = (moment: 'beforeMs' | 'afterMs') =>
  committed.map((each) => (arrivedAtMs.get(each.name) ?? Number.NaN) - each[moment])
const missing = since('afterMs').filter(Number.isNaN).length
if (missing > 0) throw new Error(`${missing} of ${records} records never arrived`)

printTable(
  ['to the first byte of the request', 'p50 ms', 'p95 ms', 'most ms'],
  [
    ['from before COMMIT', ...figures(since('beforeMs'))],
    ["from COMMIT's answer", ...figures(since('afterMs'))],
  ],
)
const [p50, p95] = [percentile(since('beforeMs'), 0.5), percentile(since('beforeMs'), 0.95)]
say(`From before COMMIT: p50 under 15 ms: ${verdict(p50 < 15)}. p95 under 50 ms: ${verdict(p95 < 50)}.`)

/** Commits one row on an open connection. @returns epoch milliseconds before and after its COMMIT */
async function insertOne(field2: string): Promise<{ beforeMs: number; afterMs: number }> {
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    await client.query(
      `insert into outbox (type, payload) values ('data', jsonb_build_object('customerId', 'C1',
         'orderDate', '2026-11-21T10:00:00Z', 'amount', 12.5, 'field1', 'value1', 'field2', $1::text))`,
      [field2],
    )
    const beforeMs = nowMs()
    await client.query('commit')
    return { beforeMs, afterMs: nowMs() }
  } finally {
    client.release()
  }
}

function field2Of(body: string): string {
  return body === '' ? '' : (JSON.parse(body) as { data: { field2: string } }).data.field2
}

/** The same clock as in the service's process, with fractions of a millisecond. */
function nowMs(): number {
  return performance.timeOrigin + performance.now()
}

function figures(values: number[]): string[] {
  return [percentile(values, 0.5), percentile(values, 0.95), Math.max(...values)].map((ms) => ms.toFixed(1))
}
