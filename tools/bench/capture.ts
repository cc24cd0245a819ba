import { captureDocuments } from '../../test/support/changeCapture.ts'
import { startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { percentile, printTable, say, sayWhere } from './harness/report.ts'

const options = readOptions('bench:capture: what the trigger of change capture costs the ERP.', {
  orders: { default: '2000', help: 'orders in each round' },
  rounds: { default: '9', help: 'rounds' },
})
const orders = Number(options.orders)
const rounds = Number(options.rounds)

const captures = ['without', 'with'] as const
type Capture = (typeof captures)[number]

sayWhere('bench:capture')
say(
  `The server's time for an order and its four lines, written and confirmed by six statements in a transaction, ${orders} times in a row ` +
    'without waiting for the disk: without triggers, and with those of change capture on both tables. ' +
    `Then for one update of 10,000 orders. In turns, ${rounds} rounds, the order turned each time.`,
)

await using postgres = await startBenchPostgres()
const { pool } = await postgres.createDatabase('capture')
await pool.query(`create table sale (id bigint generated always as identity primary key, state text, total numeric);
  create table line (id bigint generated always as identity primary key, sale bigint not null references sale, amount numeric);
  create index on line (sale)`)

const orderUs: Record<Capture, number[]> = { without: [], with: [] }
const bulkMs: Record<Capture, number[]> = { without: [], with: [] }
await measure('without') // warms the caches
for (let round = 0; round < rounds; round++)
  for (let turn = 0; turn < captures.length; turn++) {
    const capture = captures[(round + turn) % captures.length] as Capture
    const { us, ms } = await measure(capture)
    orderUs[capture].push(us)
    bulkMs[capture].push(ms)
  }

const median = (values: number[]) => percentile(values, 0.5)
const least = (values: number[]) => Math.min(...values)
printTable(
  ['triggers', 'an order, median', 'least', '10,000 orders, median', 'least'],
  captures.map((capture) => [
    capture,
    ...[median(orderUs[capture]), least(orderUs[capture])].map((us) => `${us.toFixed(0)} µs`),
    ...[median(bulkMs[capture]), least(bulkMs[capture])].map((ms) => `${ms.toFixed(0)} ms`),
  ]),
)

async function measure(capture: Capture): Promise<{ us: number; ms: number }> {
  await install(capture)
  await pool.query('truncate outbox, line, sale; checkpoint')
  const session = await pool.connect()
  try {
    await session.query('set synchronous_commit = off')
    const write = (count: number) =>
      session.query(`do $$ declare its bigint; begin
        for i in 1..${count} loop
          insert into sale (state, total) values ('draft', 10) returning id into its;
          for l in 1..4 loop insert into line (sale, amount) values (its, 2.5); end loop;
          update sale set state = 'confirmed' where id = its;
          commit;
        end loop; end $$`)
    await write(20) // plans its statements
    const usEach = (await elapsedMs(() => write(orders))) * (1_000 / orders)
    await session.query(
      'truncate outbox, line, sale; insert into sale (state, total) select null, n from generate_series(1, 10000) n',
    )
    return { us: usEach, ms: await elapsedMs(() => session.query('update sale set total = total + 1')) }
  } finally {
    session.release(true)
  }
}

async function elapsedMs(act: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now()
  await act()
  return performance.now() - beganMs
}

async function install(capture: Capture): Promise<void> {
  if (capture === 'with') await captureDocuments(pool, 'sale', { type: 'order', children: ['line(sale)'] })
  else await pool.query('drop function if exists outboxd_capture_order() cascade')
}
