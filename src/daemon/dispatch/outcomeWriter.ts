import type { Change, OutcomeBatch, Transition } from '../../model.ts'

export interface UnwrittenOutcome {
  submissionId: string
  sinceMs: number
  error: unknown
}

export interface OutcomeWriterDeps<Written> {
  nowMs(): number
  writeOutcomes(batch: OutcomeBatch): Promise<Written>
  takeReturnable(): OutcomeBatch['slots']
  /** @see src/postgres/sqlState.ts */
  blameForDatabaseError(error: unknown): 'moment' | 'piece' | 'everyone'
  onWritten(result: Written, batch: OutcomeBatch): void
  onFailed(error: unknown, batch: OutcomeBatch): void
  onBared(error: unknown, batch: OutcomeBatch): void
  /** The record stays `sending` until it is settled as an orphan. */
  onAbandoned(error: unknown, batch: OutcomeBatch): void
  waitMs(ms: number): Promise<void>
}

export type OutcomeWork = Omit<OutcomeBatch, 'slots' | 'transitions'> & { transition: Transition | null }

export const emptyOutcomeWork: OutcomeWork = {
  transition: null,
  pauses: [],
  passages: [],
  refusals: [],
  trialSucceeded: false,
  trialEnded: false,
  remaining: null,
}

export interface OutcomeWriter {
  add(work: OutcomeWork): Promise<void>
  unwritten(): UnwrittenOutcome[]
}

const retryMs = 500
const asideMs = 1_000
interface Piece {
  parts: OutcomeBatch[]
  submissionIds: readonly string[]
  sinceMs: number
  error: unknown
  done: () => void
}

type Persisted = { kind: 'written' } | { kind: 'moment' } | { kind: 'piece'; error: unknown }

/**
 * Writes outcomes in groups: one write at a time, each with all that has gathered. A write that fails for every piece
 * is repeated until it succeeds. The fences make that harmless.
 *
 * If one piece may be the cause, each is written alone. Its pauses are written first, so that they do not wait for a
 * refused step.
 *
 *     fails in passing (a lock)   set aside and tried again each second
 *     refused                     written without foreign texts
 *     refused without them        abandoned
 */
export function createOutcomeWriter<Written>(deps: OutcomeWriterDeps<Written>): OutcomeWriter {
  const unwritten = new Set<Piece>()
  let gathered: Piece[] = []
  let writing = false
  let aside: Piece[] = []
  let writingAside = false

  async function write(): Promise<void> {
    writing = true
    while (gathered.length > 0) {
      const group = gathered
      gathered = []
      const slots = { ...empty, slots: deps.takeReturnable() }
      const whole = merge([slots, ...group.flatMap(({ parts }) => parts)])
      const { kind } = await persist(whole, group)
      if (kind === 'written') for (const { done } of group) done()
      else for (const piece of [pieceOf(slots, () => {}), ...group]) await writeApart(piece)
    }
    writing = false
  }

  async function writeApart(piece: Piece): Promise<void> {
    const left: OutcomeBatch[] = []
    for (const part of piece.parts.flatMap(split)) if (!(await writePart(part, piece))) left.push(part)
    piece.parts = left
    if (left.length === 0) return piece.done()
    aside.push(piece)
    if (!writingAside) void writeAside()
  }

  /** Writes one at a time, so that only one connection waits for locks. */
  async function writeAside(): Promise<void> {
    writingAside = true
    while (aside.length > 0) {
      await deps.waitMs(asideMs)
      const pieces = aside
      aside = []
      for (const piece of pieces) await writeApart(piece)
    }
    writingAside = false
  }

  async function writePart(part: OutcomeBatch, piece: Piece): Promise<boolean> {
    const whole = await persist(part, [piece])
    if (whole.kind !== 'piece') return whole.kind === 'written'
    deps.onBared(whole.error, part)
    const bare = await persist(withoutTexts(part, whole.error), [piece])
    if (bare.kind !== 'piece') return bare.kind === 'written'
    deps.onAbandoned(bare.error, part)
    return true
  }

  async function persist(batch: OutcomeBatch, pieces: readonly Piece[]): Promise<Persisted> {
    for (;;) {
      try {
        deps.onWritten(await deps.writeOutcomes(batch), batch)
        return { kind: 'written' }
      } catch (error) {
        deps.onFailed(error, batch)
        for (const piece of pieces) piece.error = error
        const blame = deps.blameForDatabaseError(error)
        if (blame !== 'everyone') return { kind: blame, error }
        await deps.waitMs(retryMs)
      }
    }
  }

  const pieceOf = (batch: OutcomeBatch, done: () => void): Piece => ({
    parts: [batch],
    submissionIds: batch.transitions.map(({ submission }) => submission.id),
    sinceMs: deps.nowMs(),
    error: null,
    done,
  })

  return {
    add({ transition, ...rest }) {
      return new Promise((resolve) => {
        const piece = pieceOf({ ...rest, slots: [], transitions: transition ? [transition] : [] }, () => {
          unwritten.delete(piece)
          resolve()
        })
        unwritten.add(piece)
        gathered.push(piece)
        if (!writing) void write()
      })
    },
    unwritten: () =>
      [...unwritten].flatMap(({ submissionIds, sinceMs, error }) =>
        submissionIds.map((submissionId) => ({ submissionId, sinceMs, error })),
      ),
  }
}

const { transition: _, ...nothingElse } = emptyOutcomeWork
const empty: OutcomeBatch = { ...nothingElse, transitions: [], slots: [] }

function merge(batches: readonly OutcomeBatch[]): OutcomeBatch {
  const remaining = batches.flatMap((each) => each.remaining ?? [])
  return {
    transitions: batches.flatMap((each) => each.transitions),
    slots: batches.flatMap((each) => each.slots),
    pauses: batches.flatMap((each) => each.pauses),
    passages: batches.flatMap((each) => each.passages),
    refusals: batches.flatMap((each) => each.refusals),
    trialSucceeded: batches.some((each) => each.trialSucceeded),
    trialEnded: batches.some((each) => each.trialEnded),
    remaining:
      remaining.length === 0
        ? null
        : {
            requests: Math.min(...remaining.map(({ requests }) => requests)),
            ageMs: () => Math.max(...remaining.map(({ ageMs }) => ageMs())),
          },
  }
}

function split({ transitions, ...rest }: OutcomeBatch): OutcomeBatch[] {
  const parts = [
    { ...rest, transitions: [] },
    { ...empty, transitions },
  ]
  return parts.filter((part) => part.transitions.length > 0 || !isNothing(part))
}

function isNothing(rest: Omit<OutcomeBatch, 'transitions'>): boolean {
  const { slots, pauses, passages, refusals, trialSucceeded, trialEnded, remaining } = rest
  const isEmpty = [slots, pauses, passages, refusals].every(({ length }) => length === 0)
  return isEmpty && !trialSucceeded && !trialEnded && remaining === null
}

/**
 * Keeps only codes and ids that any database can hold. A record that loses its id becomes uncertain, because it cannot
 * be polled.
 */
function withoutTexts(batch: OutcomeBatch, error: unknown): OutcomeBatch {
  const why = `the ledger refused the words of the answer (${errorCodeOf(error)}), so they are left out`
  return {
    ...batch,
    transitions: batch.transitions.map((each) => ({ ...each, change: bareChange(each.change, why), cause: why })),
    pauses: batch.pauses.map((pause) => ({ ...pause, detail: why })),
    refusals: batch.refusals.map((refusal) => ({ ...refusal, summary: why })),
  }
}

function bareChange(change: Change, why: string): Change {
  const bare = { ...change }
  if ('error' in bare) bare.error = why
  if ('errorCode' in bare && !isPlain(bare.errorCode)) bare.errorCode = null
  if ('result' in bare) bare.result = null
  if (isPlain(bare.transactionId)) return bare
  delete bare.transactionId
  if (bare.state !== 'accepted' && bare.state !== 'sending') return bare
  const idWhy = `${why}, and so is the id that the service gave`
  const { pollInMs: _, unknown: __, polledRarely: ___, ...progress } = bare
  return { ...progress, state: 'uncertain', error: idWhy, errorCode: null, doneMs: null }
}

const isPlain = (word: string | null | undefined) => word == null || /^[\x21-\x7e]{1,255}$/.test(word)

function errorCodeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' && isPlain(code) ? code : 'an error without a code'
}
