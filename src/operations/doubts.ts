import {
  type DoubtfulRecord,
  type NamedTransaction,
  rowNamesAnothers,
  type SettledDoubt,
  wentBack,
} from '../ledger/operator/recoverDoubtful.ts'
import type { RecoveredAs } from '../ledger/operator/recoverHistory.ts'
import type { LedgerGap } from '../outbox/ledgerGap.ts'
import { truncate } from '../plainText.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { batches } from './bulkChange.ts'
import { transactionIdProblem } from './readAnswersFile.ts'

/** A row that the ledger does not know. */
export type LostRow = LedgerGap['rows'][number]

type SaidRow = Awaited<ReturnType<OperatorStore['outbox']['readSaid']>>[number]

/** A record that may have been sent since, and what its row makes of it. */
export interface Doubt {
  record: DoubtfulRecord
  outcome: DoubtOutcome
  /** What its row says of its state, where that is more than queued, and of the transaction. */
  said: string | null
  transactionId: string | null
}

export type DoubtOutcome =
  /** The service has it under that id: it is tracked on, whatever a person takes the others for. */
  | { kind: 'arrived'; transactionId: string }
  /** It may not be sent again on a guess, whatever a person takes the others for. */
  | { kind: 'uncertain'; why: string }
  /** As a person says. */
  | { kind: 'open' }

const readAtOnce = 1_000
const saidMaxChars = 100

/**
 * Reads what the rows of doubtful records say.
 *
 * @param lost rows that the ledger does not know
 * @param goOn asked between batches; where it says no, the rest is left out
 * @param onProgress told how many of all have been read
 * @returns with them the transactions that several rows name
 * @throws DatabaseUnusable where the outbox cannot be read
 */
export async function readDoubts(
  store: Pick<OperatorStore, 'readDoubtfulRecords' | 'readNamed'> & {
    outbox: Pick<OperatorStore['outbox'], 'readSaid'>
  },
  lost: readonly LostRow[],
  { goOn, onProgress }: { goOn(): boolean; onProgress(done: number, of: number): void },
): Promise<{ doubts: Doubt[]; shared: ReadonlySet<string> }> {
  const records = await store.readDoubtfulRecords()
  const read: { record: DoubtfulRecord; row: SaidRow | undefined; known: NamedTransaction | undefined }[] = []
  for (const batch of batches(records, readAtOnce)) {
    if (!goOn()) break
    const said = await readSaidOf(store.outbox, batch)
    const named = batch.flatMap((record) => {
      const transactionId = said.get(record.outboxId)?.transactionId ?? null
      return transactionId === null ? [] : [{ id: record.id, resource: record.resource, transactionId }]
    })
    const known = new Map((await store.readNamed(named)).map((each) => [each.id, each]))
    for (const record of batch) read.push({ record, row: said.get(record.outboxId), known: known.get(record.id) })
    onProgress(read.length, records.length)
  }
  const rows = read.flatMap(({ row, known }) => (row === undefined || known?.isFormer ? [] : [row]))
  const shared = sharedTransactions([...lost, ...rows])
  const doubts = read
    .map(({ record, row, known }) => doubtOf(record, row, { known, shared }))
    .filter(({ record, outcome }) => !record.isOnlyByName || outcome.kind === 'arrived')
  return { doubts, shared }
}

/** What an id that several rows name says of each nobody knows. Pure. */
export function sharedTransactions(rows: readonly Pick<LostRow, 'transactionId'>[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(
    rows.flatMap(({ transactionId }) =>
      transactionId === null || seen.size < seen.add(transactionId).size ? [] : [transactionId],
    ),
  )
}

/** Why the transaction that a row names is not to be believed; null where it is. Pure. @param shared those that several rows name */
export function whyNotBelieved(transactionId: string, shared: ReadonlySet<string>): string | null {
  if (shared.has(transactionId)) return `its outbox row names transaction ${transactionId}, and so does another row`
  const problem = transactionIdProblem(transactionId)
  return problem && `its outbox row names a transaction that is none: ${problem}`
}

/** Of two rows of one id, which only a promise keeps away, the one that names a transaction. */
async function readSaidOf(
  outbox: Pick<OperatorStore['outbox'], 'readSaid'>,
  records: readonly DoubtfulRecord[],
): Promise<ReadonlyMap<string, SaidRow>> {
  const rows = await outbox.readSaid(records.flatMap(({ isServed, outboxId }) => (isServed ? [outboxId] : [])))
  const inOrder = rows.toSorted((a, b) => Number(a.transactionId !== null) - Number(b.transactionId !== null))
  return new Map(inOrder.map((row) => [row.outboxId, row]))
}

function doubtOf(
  record: DoubtfulRecord,
  row: SaidRow | undefined,
  { known, shared }: { known: NamedTransaction | undefined; shared: ReadonlySet<string> },
): Doubt {
  if (row === undefined || !record.isServed)
    return { record, outcome: { kind: 'open' }, said: null, transactionId: null }
  const said = row.said === null ? null : truncate(row.said, saidMaxChars)
  const transactionId = known?.isFormer ? null : row.transactionId
  const doubt = (outcome: DoubtOutcome): Doubt => ({ record, outcome, said, transactionId })
  if (transactionId !== null) {
    const heldBy = known?.heldBy ?? null
    const why = heldBy === null ? whyNotBelieved(transactionId, shared) : rowNamesAnothers(transactionId, heldBy)
    return doubt(why === null ? { kind: 'arrived', transactionId } : { kind: 'uncertain', why: wentBack(why) })
  }
  return doubt(
    row.isEnd
      ? {
          kind: 'uncertain',
          why: wentBack(`its outbox row says that it came to its end (${said}) and names no transaction`),
        }
      : { kind: 'open' },
  )
}

/** What is known of them without a person, and what his word makes of those of which their rows say more than queued. Pure. */
export function settledDoubts(doubts: readonly Doubt[], as: RecoveredAs): SettledDoubt[] {
  return doubts.flatMap(({ record, outcome, said }): SettledDoubt[] => {
    if (outcome.kind !== 'open') return [{ ...record, ...outcome }]
    if (as === 'new' || said === null) return []
    return [{ ...record, kind: 'uncertain', why: wentBack(`its outbox row says ${said}`) }]
  })
}

/** How many come to which end, whatever a person says, and how many are as he says. Pure. */
export function countOutcomes(doubts: readonly Doubt[]): Record<DoubtOutcome['kind'], number> {
  const counts = { arrived: 0, uncertain: 0, open: 0 }
  for (const { outcome } of doubts) counts[outcome.kind] += 1
  return counts
}

/** How many of these rows name a transaction. Pure. */
export const countNamed = (rows: readonly LostRow[]): number =>
  rows.filter(({ transactionId }) => transactionId !== null).length
