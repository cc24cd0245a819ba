import type { OutboxRecord, Resource, RowStatus } from '../record.ts'

/** What the mapping makes of a record. */
export type Mapped =
  | { kind: 'mapped'; resource: Resource; tracked: boolean; sendsOwnId: boolean; body: string }
  /** Its data is invalid, its type has no mapping, or it cannot be read: why, for the person who mends it. */
  | { kind: 'refused'; resource: Resource | null; reason: string }

/** A record as the ledger keeps it: queued with a frozen body, or rejected with the reason. */
export interface CapturedRecord extends Omit<OutboxRecord, 'unreadable'> {
  id: string
  resource: Resource | null
  body: string | null
  tracked: boolean
  sendsOwnId: boolean
  idempotencyKey: string
  error: string | null
}

interface Turn {
  queued: number
  crowdedKeys: readonly string[]
  putAside: readonly string[]
  /** @returns the ids of rows of which nothing became, since the ledger knows others by their ids */
  keep(records: readonly CapturedRecord[]): Promise<ReadonlySet<string>>
}

interface ClaimedRows extends AsyncDisposable {
  readonly records: OutboxRecord[]
  mark(statuses: readonly RowStatus[]): Promise<string[]>
}

export interface CaptureDeps {
  /** At most this many queued submissions: a backlog of millions stays in the outbox, where it is cheap. */
  windowMost: number
  hasNew(): Promise<boolean>
  claim(limit: number, exceptKeys: readonly string[], exceptIds: readonly string[]): Promise<ClaimedRows>
  /** Runs the work while no other instance captures, in a transaction of the ledger; null where another one does. */
  takeTurn<T>(work: (turn: Turn) => Promise<T>): Promise<T | null>
  map(record: OutboxRecord, submissionId: string): Mapped
  newId(): string
  newKey(): string
  /** Records are in the ledger and may be sent; their rows are yet to be marked. */
  kept(count: number): void
  /** Rows do not say that they are taken, and have to be told. */
  unmarked(outboxIds: readonly string[]): Promise<void>
}

const batchMost = 500

/**
 * Captures one batch of new outbox rows: claims them, maps each, keeps all in the ledger, marks them as taken.
 *
 * The ledger commits before the outbox does. A crash in between leaves rows that are new and kept: they are claimed
 * again, which changes nothing in the ledger.
 *
 * @returns whether there may be more to capture at once
 */
export async function captureOnce(deps: CaptureDeps): Promise<boolean> {
  if (!(await deps.hasNew())) return false
  await using claimed = new AsyncDisposableStack()
  const kept = await deps.takeTurn(async (turn) => {
    const limit = Math.min(batchMost, deps.windowMost - turn.queued)
    if (limit <= 0) return null
    const rows = claimed.use(await deps.claim(limit, turn.crowdedKeys, turn.putAside))
    if (rows.records.length === 0) return null
    const records = rows.records.map((record) => capture(deps, record))
    const inConflict = await turn.keep(records)
    const inLedger = records.filter(({ outboxId }) => !inConflict.has(outboxId))
    return { rows, records: inLedger, more: records.length === limit }
  })
  if (kept === null) return false
  deps.kept(kept.records.length)
  const unmarked = await kept.rows.mark(kept.records.map(rowStatus))
  if (unmarked.length > 0) await deps.unmarked(unmarked)
  return kept.more
}

function capture(deps: CaptureDeps, row: OutboxRecord): CapturedRecord {
  const id = deps.newId()
  const mapped = deps.map(row, id)
  const { unreadable: _, ...record } = row
  const kept = { ...record, id, idempotencyKey: deps.newKey() }
  if (mapped.kind === 'mapped') {
    const { resource, tracked, sendsOwnId, body } = mapped
    return { ...kept, resource, tracked, sendsOwnId, body, error: null }
  }
  return { ...kept, resource: mapped.resource, tracked: true, sendsOwnId: false, body: null, error: mapped.reason }
}

function rowStatus({ outboxId, stamp, error }: CapturedRecord): RowStatus {
  return { outboxId, stamp, state: error === null ? 'queued' : 'rejected', transactionId: null, errorCode: null, error }
}
