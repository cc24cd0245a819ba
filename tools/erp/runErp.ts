import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import type pg from 'pg'
import { newerVersionIdSql } from '../../src/ledger/documents.ts'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { daemonEnvironment, startDaemonProcess } from '../../test/support/daemon.ts'
import { createDatabaseOn, openPool, startPostgres } from '../../test/support/postgres.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { until } from '../../test/support/until.ts'
import { type Arrival, compareDocuments, type Revenue, type Version } from './compareDocuments.ts'
import { type ConfirmPair, isTooSlow, measureSlowdown, type Slowdown, slowerMax } from './slowdown.ts'
import { installTryton } from './tryton.ts'

export interface ErpOptions {
  readonly customers: number
  readonly sales: number
  /** Processes that sell at once. */
  readonly sellers: number
  readonly kills: number
  /** Sales that are confirmed twice to measure it: with the triggers and without. */
  readonly pairs: number
  readonly say: (text: string) => void
}

export interface ErpResult {
  readonly violations: readonly string[]
  readonly versions: number
  readonly arrivals: number
  readonly kills: number
  /** Records that a kill left in doubt, which the service's ledger settled. */
  readonly uncertain: number
  readonly slowdown: Slowdown
}

/** Sells in Tryton while the daemon is killed repeatedly, and compares what the service got with Tryton's report. */
export async function runErp({ customers, sales, sellers, kills, pairs, say }: ErpOptions): Promise<ErpResult> {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-erp-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const server = stack.use(await startPostgres({ fsync: 'off' }))
  const url = await createDatabaseOn(server.url, 'tryton')
  const serviceUrl = await createDatabaseOn(server.url, 'service')
  const sandbox = await startSandbox({
    databaseUrl: serviceUrl,
    port: 0,
    rateLimitRequests: 100_000,
    processingTime: 'constant:0.05',
    idempotency: 'ignore',
  })
  stack.defer(() => sandbox.close())
  // Slow answers, so that a kill happens while requests are open.
  const slow = await fetch(`${sandbox.url}/_sandbox/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'delay', delayMs: 150, endpoint: ['submit', 'order'] }),
  })
  if (!slow.ok) throw new Error(await slow.text())
  const [erp, service] = [openPool(url), openPool(serviceUrl)]
  for (const pool of [erp, service]) stack.defer(() => pool.end())

  say('Tryton makes its tables, a company, articles and customers')
  const tryton = await installTryton(server.url, join(folder, 'tryton'))
  await tryton.run('setup', customers)

  const mappingsDir = join(folder, 'mappings')
  const env = daemonEnvironment(url, sandbox.url, { RATE_LIMIT_REQUESTS: '30000', MAPPINGS_DIR: mappingsDir })
  await runCommand(['migrate', '--outbox'], env)
  await describeSales(env, mappingsDir)
  await capture(erp, join(mappingsDir, 'sale_sale.capture.sql'))

  say(`${pairs} sales are confirmed with change capture and without`)
  const slowdown = measureSlowdown((await tryton.run('measure', pairs)) as ConfirmPair[])

  // The same documents as records of another type.
  await capture(erp, join(mappingsDir, 'sale_data.capture.sql'))
  await runCommand(['check'], env)
  say(`${sellers} processes sell ${sales} times, and the daemon is killed ${kills} times`)
  const daemon = superviseDaemon(env)
  stack.defer(daemon.stop)
  await daemon.ready()
  const selling = Promise.all(
    Array.from({ length: sellers }, (_, i) =>
      tryton.run('sell', i + 1, Math.ceil((sales * (i + 1)) / sellers) - Math.ceil((sales * i) / sellers)),
    ),
  )
  const killed = await killAgain(daemon, kills, selling)
  const sold = (await selling).flat() as (Version | { error: string })[]
  const uncertain = await drain(erp, service, env)

  const reported = (await tryton.run('report')) as (Version | Revenue)[]
  const last = reported.filter((each) => 'sale' in each).map((each) => ({ ...each, certain: true }))
  const versions = sold.filter((each) => 'sale' in each)
  const arrivals = await readArrivals(service)
  return {
    versions: versions.length + last.length,
    arrivals: arrivals.length,
    kills: killed,
    uncertain,
    slowdown,
    violations: [
      ...sold.flatMap((each) => ('error' in each ? [`Tryton met an error: ${each.error}`] : [])),
      ...compareDocuments(
        versions,
        last,
        arrivals,
        reported.filter((each) => 'revenue' in each),
      ),
      ...(isTooSlow(slowdown) ? [`a confirmation with change capture takes more than ${slowerMax} times as long`] : []),
      ...(killed < kills ? [`the daemon was killed ${killed} times, not ${kills}`] : []),
      ...daemon.deserters,
    ],
  }
}

/** Writes two files with `outboxd describe` and fills them in: the lines as an order, and the header as data. */
async function describeSales(env: Record<string, string>, mappingsDir: string): Promise<void> {
  const describeSale = ['describe', 'sale_sale', '--capture', '--child', 'sale_line(sale)', '--write']
  await runCommand(describeSale, env)
  await runCommand([...describeSale, '--endpoint', 'data', '--type', 'sale_data'], env)
  await edit(join(mappingsDir, 'sale_sale.yaml'), [
    [/h\.\*/, 'h.*, (select md5(p.code)::uuid from public.party_party p where p.id = h.party) as customer'],
    [/FILL_IN as items.*/, `(select ${lines}) as items`],
    [/from: FILL_IN/, 'from: customer'],
    [/condition: FILL_IN/, condition],
  ])
  await edit(join(mappingsDir, 'sale_data.yaml'), [
    [/h\.\*/, 'h.*, (select p.code from public.party_party p where p.id = h.party) as customer'],
    [/condition: FILL_IN/, condition],
    [/(customer_id: \{ from: )FILL_IN/, '$1customer'],
    [/(order_date: \{ from: )FILL_IN/, '$1sale_date, timezone: UTC'],
    [/(total_amount: \{ from: )FILL_IN/, '$1total_amount_cache'],
    [/field1: \{ from: FILL_IN, required: true/, 'field1: { constant: value1'],
    [/(field2: \{ from: )FILL_IN/, '$1number'],
  ])
  await writeFile(join(mappingsDir, 'outbox.yaml'), 'changes: each\n')
}

const condition = `condition: h.state in ('confirmed', 'processing', 'done')`

/** Runs the SQL as `psql -1` does. */
const capture = async (erp: pg.Pool, file: string) => erp.query(`begin; ${await readFile(file, 'utf8')} commit`)

const lines = `jsonb_agg(jsonb_build_object('article', a.code, 'description', l.description, 'quantity', l.quantity,
      'unitPrice', l.unit_price) order by l.sequence, l.id)
      from public.sale_line l left join public.product_product a on a.id = l.product
      where l.sale = h.id and l.type = 'line'`

async function edit(file: string, changes: readonly [RegExp, string | (() => string)][]): Promise<void> {
  let text = await readFile(file, 'utf8')
  for (const [place, by] of changes) {
    if (!place.test(text)) throw new Error(`${file} has no ${place}:\n${text}`)
    text = typeof by === 'string' ? text.replace(place, by) : text.replace(place, by)
  }
  await writeFile(file, text)
}

async function runCommand(args: readonly string[], env: Record<string, string>): Promise<void> {
  const program = startProgram({ args, env })
  const { code, signal } = await program.ended()
  if (code !== 0) throw new Error(`outboxd ${args.join(' ')} left with ${code ?? signal}:\n${program.lastLines()}`)
}

/** Runs a daemon, and another one after each kill. */
function superviseDaemon(env: Record<string, string>) {
  let current: Promise<Program> = startDaemonProcess(env)
  const deserters: string[] = []
  return {
    deserters,
    ready: () => current,
    async kill() {
      const program = await current
      program.signal('SIGKILL')
      const { signal, code } = await program.ended()
      if (signal !== 'SIGKILL') deserters.push(`the daemon left by itself with ${code}:\n${program.lastLines()}`)
      current = startDaemonProcess(env)
      await current
    },
    stop: async () => void (await (await current).stop()),
  }
}

/** Kills the daemon at random moments while the sellers work. @returns the number of kills */
async function killAgain(daemon: { kill(): Promise<void> }, kills: number, selling: Promise<unknown>): Promise<number> {
  let done = false
  const finished = selling.finally(() => {
    done = true
  })
  finished.catch(() => {})
  for (let killed = 0; killed < kills; killed += 1) {
    await Promise.race([after(500 + Math.random() * 4_000), finished])
    if (done) return killed
    await daemon.kill()
  }
  await finished
  return kills
}

/** Waits until each row has ended, and settles records in doubt by the service's ledger. @returns their number */
async function drain(erp: pg.Pool, service: pg.Pool, env: Record<string, string>): Promise<number> {
  const settled = new Set<string>()
  await until(
    async () => {
      const { rows: doubtful } = await erp.query<{ id: string; key: string; isOld: boolean }>(
        `select s.id, s.idempotency_key as key, ${newerVersionIdSql('s')} is not null as "isOld"
         from outboxd.submission s where s.state = 'uncertain'`,
      )
      for (const { id, key, isOld } of doubtful.filter((each) => !settled.has(each.id))) {
        settled.add(id)
        const { rows } = await service.query<{ transactionId: string }>(
          `select coalesce(transaction_id, order_id::text) as "transactionId" from sandbox.ledger
           where idempotency_key in ($1, '"' || $1 || '"') and num_nonnulls(transaction_id, order_id) = 1`,
          [key],
        )
        const arrived = rows[0]?.transactionId
        if (arrived !== undefined) await runCommand(['resolve', id, '--arrived', arrived], env)
        else if (isOld) await runCommand(['discard', id, '--reason', 'did not arrive', '--yes'], env)
        else await runCommand(['resolve', id, '--not-arrived', '--yes'], env)
      }
      const { rows } = await erp.query(`select status, error, count(*)::int as n from outbox group by status, error`)
      return rows
    },
    (rows) => rows.every(hasEnded),
    240_000,
  )
  return settled.size
}

/** A sale that went back to a draft after it was sent is listed for a person. */
const hasEnded = ({ status, error }: { status: string; error: string | null }) =>
  status === 'completed' ||
  status === 'discarded' ||
  (status === 'rejected' && /^changed after it was sent/.test(error ?? ''))

async function readArrivals(service: pg.Pool): Promise<Arrival[]> {
  const { rows } = await service.query<Arrival>(
    `select case endpoint when 'submit' then 'data' else 'orders' end as endpoint, body from sandbox.ledger
     where method = 'POST' and num_nonnulls(transaction_id, order_id) = 1 order by sequence`,
  )
  return rows
}
