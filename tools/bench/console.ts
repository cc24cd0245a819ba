import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { chromiumPath, openBrowser } from '../../test/support/browser.ts'
import { daemonEnvironment } from '../../test/support/daemon.ts'
import { startProgram } from '../../test/support/program.ts'
import { noCompileCache, startBenchDaemon } from './harness/benchDaemon.ts'
import { buildPackage, deployedFlags } from './harness/build.ts'
import { fillLedger, fillUnderWay } from './harness/fillLedger.ts'
import { startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere, verdict } from './harness/report.ts'
import { startMemoryService } from './harness/startMemoryService.ts'
import { memoryMb } from './harness/usage.ts'
import { openViewers } from './harness/viewers.ts'

const options = readOptions(
  'bench:console: what each page of the console costs over a large ledger, and what many viewers cost the database.',
  {
    submissions: { default: '1000000', help: 'submissions in the ledger' },
    viewers: { default: '50', help: 'open pages' },
    seconds: { default: '30', help: 'how long the pages stay open' },
    statements: { default: false, help: 'also lists the statements and their time' },
  },
)
const [submissions, viewers, seconds] = [options.submissions, options.viewers, options.seconds].map(Number) as [
  number,
  number,
  number,
]
const paintMs = 200
const pageKbMost = 40
const statementsMost = 5
const rounds = 5
/** The console shares what it has read for Now for this long. After that, the next viewer makes it read again. */
const sharedMs = 3_000
const role = 'bench_console'

sayWhere('bench:console')
say(
  `${submissions} submissions with four events each, made by SQL, some 2,000 of them under way or waiting for a person; a daemon that sends ` +
    `100 a minute. The console as it is deployed. Each page ${rounds} times after a first one: the answer with its body, the first paint in chromium on ` +
    `loopback (medians), and what the database is asked for one answer. Then ${viewers} look for ${seconds} s, most at Now, and the pages are painted again.`,
)

await using postgres = await startBenchPostgres({ max_wal_size: '4GB', shared_buffers: '512MB' })
const database = await postgres.createDatabase('console')
// The console has its own role, so that pg_stat_statements distinguishes its statements from all others.
await database.pool.query(`create role ${role} superuser login password '${role}'`)
await fillLedger(database, { first: 1, count: submissions, oldestDays: 89, newestDays: 0 })
await fillUnderWay(database)
await using service = await startMemoryService(2_000)
await using built = await buildPackage()
await using _daemon = await startBenchDaemon({
  databaseUrl: database.url,
  serviceUrl: service.url,
  main: built.main,
  flags: deployedFlags,
})
await using program = startProgram({
  script: built.main,
  flags: deployedFlags,
  args: ['console', '--port', '0', '--json'],
  env: { ...daemonEnvironment(database.url, service.url), ...noCompileCache, DATABASE_URL: asRole(database.url) },
  stderr: 'inherit',
})
const { url: origin } = JSON.parse(await program.line((line) => line.startsWith('{'))) as { url: string }
const examples = await readExamples()
await using browser = await openOrNull()
await measure()

async function measure(): Promise<void> {
  const pages = pagesOf(examples)
  const lines: string[][] = []
  let largestKb = 0
  for (const [what, path] of pages) {
    const alone = await answerMs(path)
    const kb = await answer(path)
    largestKb = Math.max(largestKb, kb)
    await rest(path)
    const asked = await statementsOf(() => answer(path))
    const painted = await paint(path)
    lines.push([
      what,
      kb.toFixed(0),
      alone.toFixed(0),
      painted?.toFixed(0) ?? '',
      String(count(asked)),
      total(asked).toFixed(0),
    ])
    if (options.statements) printStatements(what, asked)
  }
  const { perSecond, renewals, crowded, asked } = await withViewers(pages)
  printTable(
    ['page', 'kB', 'answer, ms', 'first paint, ms', 'statements', 'of them, ms', `first paint with ${viewers}, ms`],
    lines.map((line, i) => [...line, crowded[i]?.toFixed(0) ?? '']),
  )
  if (options.statements) printStatements(`with ${viewers}`, asked)
  const paints = [...lines.map(([, , , painted]) => Number(painted)), ...crowded.map(Number)]
  say(
    `With ${viewers} who look: ${perSecond.toFixed(1)} statements a second (under ${statementsMost}: ${verdict(perSecond < statementsMost)}), ` +
      `${(renewals / seconds).toFixed(0)} pages a second read again, ${memoryMb(program.pid).residentMb.toFixed(0)} MB resident. ` +
      `Each page under ${pageKbMost} kB: ${verdict(largestKb < pageKbMost)}. First paint under ${paintMs} ms: ${browser === null ? 'no chromium to see it with' : verdict(paints.every((ms) => ms < paintMs))}.`,
  )
}

/** Opens pages as viewers do: most of Now, some of a list, some of a record. */
async function withViewers(pages: readonly (readonly [what: string, path: string])[]) {
  const crowd = Array.from({ length: viewers }, (_, i) => {
    if (i % 5 === 3) return '/records'
    return i % 5 === 4 ? `/records/${examples.underWay[i % examples.underWay.length]}` : '/'
  })
  using open = await openViewers(origin, crowd)
  await pause(3_000)
  const asked = await statementsOf(() => pause(seconds * 1000))
  const { renewals } = open
  const crowded: (number | undefined)[] = []
  for (const [, path] of pages) crowded.push(await paint(path))
  return { perSecond: count(asked) / seconds, renewals, crowded, asked }
}

interface Examples {
  waiting: string
  completed: string
  /** Ids of records on their way. */
  underWay: string[]
}

async function readExamples(): Promise<Examples> {
  const idsOf = async (states: string[], limit: number) => {
    const { rows } = await database.pool.query<{ id: string }>(
      'select id from outboxd.submission where state = any($1) order by seq desc limit $2',
      [states, limit],
    )
    return rows.map(({ id }) => id)
  }
  return {
    waiting: (await idsOf(['failed'], 1))[0] ?? '',
    completed: (await idsOf(['completed'], 1))[0] ?? '',
    underWay: await idsOf(['accepted', 'queued'], 10),
  }
}

function pagesOf({ waiting, completed }: Examples): [what: string, path: string][] {
  return [
    ['Now', '/'],
    ['Records, that wait for a person', '/records'],
    ['Records, completed', '/records?state=completed'],
    ['Records of a key', '/records?state=completed&key=C4712'],
    ['A record that failed', `/records/${waiting}`],
    ['A record that is completed', `/records/${completed}`],
    ['Mapping', '/mapping'],
    ['Audit', '/audit'],
  ]
}

/** @returns the size of the page in kB */
async function answer(path: string): Promise<number> {
  const response = await fetch(origin + path)
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} is answered ${response.status}: ${text.slice(0, 500)}`)
  return Buffer.byteLength(text) / 1_000
}

async function rest(path: string): Promise<void> {
  if (path === '/') await pause(sharedMs)
}

async function answerMs(path: string): Promise<number> {
  await answer(path)
  const times: number[] = []
  for (let i = 0; i < rounds; i++) {
    await rest(path)
    const beganMs = performance.now()
    await answer(path)
    times.push(performance.now() - beganMs)
  }
  return median(times)
}

/** Time from the navigation to the first contents on the screen; undefined without a browser. */
async function paint(path: string): Promise<number | undefined> {
  if (browser === null) return undefined
  const page = await browser.newPage()
  const times: number[] = []
  for (let i = 0; i <= rounds; i++) {
    await rest(path)
    await page.goto(origin + path)
    const paintedMs = await page.evaluate<number>(`new Promise((done) => new PerformanceObserver((list) => {
      const [entry] = list.getEntriesByName('first-contentful-paint')
      if (entry) done(entry.startTime)
    }).observe({ type: 'paint', buffered: true }))`)
    if (i > 0) times.push(paintedMs)
  }
  await page.close()
  return median(times)
}

interface Statement {
  query: string
  calls: number
  ms: number
}

/** Returns the console's statements while `work` runs. */
async function statementsOf(work: () => Promise<unknown>): Promise<Statement[]> {
  await database.pool.query(`select pg_stat_statements_reset('${role}'::regrole::oid, 0, 0)`)
  await work()
  const { rows } = await database.pool.query<Statement>(
    `select left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as query, calls::float8 as calls, total_exec_time as ms
     from pg_stat_statements where userid = '${role}'::regrole and toplevel order by total_exec_time desc`,
  )
  return rows
}

function printStatements(what: string, asked: readonly Statement[]): void {
  printTable(
    [`statement: ${what}`, 'calls', 'ms'],
    asked.map(({ query, calls, ms }) => [query.replaceAll('|', '¦'), String(calls), ms.toFixed(1)]),
  )
}

function count(asked: readonly Statement[]): number {
  return asked.reduce((sum, { calls }) => sum + calls, 0)
}

function total(asked: readonly Statement[]): number {
  return asked.reduce((sum, { ms }) => sum + ms, 0)
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
}

function asRole(url: string): string {
  return Object.assign(new URL(url), { username: role, password: role }).href
}

async function openOrNull(): Promise<Browser | null> {
  return chromiumPath === undefined ? null : openBrowser()
}
