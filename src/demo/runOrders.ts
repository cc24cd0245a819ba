import { setTimeout as delay } from 'node:timers/promises'
import { endStates } from '../model/submission.ts'
import { checkRecords, type Evidence, formatRecordCheck, type LoggedRequest, type RecordCheck } from './checkRecords.ts'
import { createSalesOrder, insertSalesOrder, readOutboxRows, readTotalByOrderNumber, type SalesOrder } from './erp.ts'
import type { Installation } from './installation.ts'

export interface DemoOutcome {
  check: RecordCheck
  /** `mostInAMinute`: the most requests in any 60 seconds. */
  service: { requests: number; mostInAMinute: number }
  tookMs: number
}

interface RunOptions {
  records: number
  signal: AbortSignal
  print: (line: string) => void
}

const allowedInAMinute = 100
/** On average: most records need a POST and a little more than one GET. */
const requestsPerRecord = 1.8

/** In the shorter window of the rate limit, one record must end. */
const stuckMs = 120_000
const lookMs = 250

/**
 * Inserts the orders, waits until all have ended or are stuck, then compares ERP, service and outbox.
 *
 * @throws Error if the daemon or the sandbox ends, the reason of `signal` if it is aborted
 */
export async function runOrders(
  installation: Installation,
  { records, signal, print }: RunOptions,
): Promise<DemoOutcome> {
  const startedMs = performance.now()
  const orders = Array.from({ length: records }, (_, index) => createSalesOrder(index))
  const { erp, sandboxUrl, broken } = installation
  let done = 0
  const view = installation.watchStatus((line) => print(`${done} of ${records} have ended | ${line}`))
  for (const order of orders) await insertSalesOrder(erp, order)
  for (let movedMs = performance.now(); done < records && performance.now() - movedMs < stuckMs; ) {
    await Promise.race([delay(lookMs, undefined, { signal }), broken])
    const sql = 'select count(*)::int as n from outbox where status = any($1)'
    const { rows } = await erp.query<{ n: number }>(sql, [endStates])
    const ended = rows[0]?.n ?? 0
    if (ended > done) movedMs = performance.now()
    done = ended
  }
  await view.stop()
  const tookMs = performance.now() - startedMs
  const check = checkRecords(await gatherEvidence(installation, orders))
  const rate = await readControl<{ requests: number; maxArrived: number }>(sandboxUrl, 'rate?windowSeconds=60')
  return { check, service: { requests: rate.requests, mostInAMinute: rate.maxArrived }, tookMs }
}

async function gatherEvidence({ erp, sandboxUrl }: Installation, orders: readonly SalesOrder[]): Promise<Evidence> {
  const ledgerOf = (endpoint: string) =>
    readControl<{ rows: LoggedRequest[] }>(sandboxUrl, `ledger?endpoint=${endpoint}&limit=1000000`)
  const [amounts, submits, posts, outbox] = await Promise.all([
    readTotalByOrderNumber(erp),
    ledgerOf('submit'),
    ledgerOf('order'),
    readOutboxRows(erp),
  ])
  const written = orders.map(({ number, kind }) => ({
    reference: number,
    kind,
    amount: amounts.get(number) ?? 'nothing',
  }))
  return { written, arrivals: [...submits.rows, ...posts.rows], outbox }
}

async function readControl<T>(sandboxUrl: string, what: string): Promise<T> {
  const answer = await fetch(`${sandboxUrl}/_sandbox/${what}`, { signal: AbortSignal.timeout(30_000) })
  if (!answer.ok) throw new Error(`cannot read the sandbox's records: /_sandbox/${what} answered ${answer.status}`)
  return (await answer.json()) as T
}

export function expectedMinutesMessage(records: number): string {
  const minutes = Math.floor((records * requestsPerRecord) / allowedInAMinute)
  return minutes === 0
    ? ''
    : `the service allows ${allowedInAMinute} requests a minute and a record takes about two: this takes about ${minutes} min\n`
}

export function isAllCorrect({ check, service }: Pick<DemoOutcome, 'check' | 'service'>): boolean {
  return check.problems.length === 0 && service.mostInAMinute <= allowedInAMinute
}

const problemsShown = 20

export function formatOutcome(outcome: DemoOutcome): string {
  const { check, service, tookMs } = outcome
  const { requests, mostInAMinute } = service
  const records = check.kinds.reduce((sum, { written }) => sum + written, 0)
  const counted = `The service counted ${requests} requests; at most ${mostInAMinute} came in any 60 seconds, and ${allowedInAMinute} are allowed.\n`
  if (isAllCorrect(outcome)) {
    return `${formatRecordCheck(check)}
All ${records} records ended after ${Math.round(tookMs / 1000)} s. The wrong ones were rejected, and their outbox rows say why.
The service has each of the remaining records exactly once, and nothing else.
Every amount that arrived equals the ERP's to the cent (compared digit by digit).
${counted}`
  }
  const more = check.problems.length - problemsShown
  const problems = [
    ...check.problems.slice(0, problemsShown),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...(mostInAMinute > allowedInAMinute ? ['the service got more requests than the limit allows'] : []),
  ]
  return `${formatRecordCheck(check)}\nNOT as it should be:\n${problems.map((problem) => `  ${problem}\n`).join('')}${counted}`
}
