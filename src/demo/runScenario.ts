import { setTimeout as delay } from 'node:timers/promises'
import { insertSalesOrder, readAmounts, readOutbox } from './erp.ts'
import type { Installation } from './installation.ts'
import type { LiveView } from './liveView.ts'
import { type Progress, readProgress } from './progress.ts'
import { type SalesOrder, salesOrder } from './salesOrder.ts'
import type { Evidence, LedgerRow, WrittenRecord } from './verify.ts'

export interface ScenarioDeps {
  installation: Installation
  orders: readonly SalesOrder[]
  view: LiveView
  signal: AbortSignal
}

/** Longer than the budget's window: by then something must have moved. */
const stuckMs = 120_000

export function salesOrders(count: number): SalesOrder[] {
  return Array.from({ length: count }, (_, index) => salesOrder(index))
}

/**
 * Writes the orders and shows them while they travel.
 *
 * @returns how long it took; also when they are stuck, for verify.ts says how far they came
 * @throws CommandEnded when the daemon or the sandbox ends meanwhile, the signal's reason when it is aborted
 */
export async function runScenario({ installation, orders, view, signal }: ScenarioDeps): Promise<{ tookMs: number }> {
  const startedMs = performance.now()
  const writing = (async () => {
    for (const order of orders) await insertSalesOrder(installation.erp, order)
  })()
  const [, tookMs] = await Promise.all([writing, watch({ installation, orders, view, signal }, startedMs)])
  return { tookMs }
}

async function watch({ installation, orders, view, signal }: ScenarioDeps, startedMs: number): Promise<number> {
  let movedMs = 0
  let last = ''
  for (;;) {
    const progress = await readProgress(installation.erp, orders.length, performance.now() - startedMs)
    view.show(progress)
    const now = fingerprint(progress)
    if (now !== last) movedMs = progress.elapsedMs
    last = now
    if (progress.done === progress.total || progress.elapsedMs - movedMs > stuckMs) return progress.elapsedMs
    await Promise.race([delay(view.everyMs, undefined, { signal }), installation.broken])
  }
}

function fingerprint({ done, inOutbox, states }: Progress): string {
  return JSON.stringify([done, inOutbox, states])
}

/** Asks the three that know: the ERP's own table, the sandbox's ledger, the outbox. */
export async function gatherHistory(
  { erp, sandboxUrl }: Installation,
  orders: readonly SalesOrder[],
): Promise<Evidence> {
  const [amounts, submits, posts, outbox] = await Promise.all([
    readAmounts(erp),
    readLedger(sandboxUrl, 'submit'),
    readLedger(sandboxUrl, 'order'),
    readOutbox(erp),
  ])
  const written = orders.map(
    ({ number, kind }): WrittenRecord => ({
      reference: number,
      kind,
      amount: amounts.get(number) ?? 'nothing',
    }),
  )
  return { written, arrivals: [...submits, ...posts], outbox }
}

/** What the service counted itself. */
export interface ServiceCount {
  requests: number
  /** The most that arrived in any 60 seconds. */
  mostInAMinute: number
}

export async function readServiceCount(sandboxUrl: string): Promise<ServiceCount> {
  const rate = await readControl<{ requests: number; maxArrived: number }>(sandboxUrl, 'rate?windowSeconds=60')
  return { requests: rate.requests, mostInAMinute: rate.maxArrived }
}

async function readLedger(sandboxUrl: string, endpoint: string): Promise<LedgerRow[]> {
  const { rows } = await readControl<{ rows: LedgerRow[] }>(sandboxUrl, `ledger?endpoint=${endpoint}&limit=1000000`)
  return rows
}

async function readControl<T>(sandboxUrl: string, what: string): Promise<T> {
  const answer = await fetch(`${sandboxUrl}/_sandbox/${what}`, { signal: AbortSignal.timeout(30_000) })
  if (!answer.ok) throw new Error(`the sandbox did not say what it has: /_sandbox/${what} answered ${answer.status}`)
  return (await answer.json()) as T
}
