import type { OutcomeBatch, Transition } from '../../model.ts'

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

export type OutcomeWriter = ReturnType<typeof createOutcomeWriter>

const retryMs = 500
const asideMs = 1_000

interface Piece extends PromiseWithResolvers<void> {
  batch: OutcomeBatch
  sinceMs: number
  error: unknown
}

/**
 * Writes outcomes in groups: one write at a time, each with all that has gathered. A write that fails for every piece
 * is repeated until it succeeds. The fences make that harmless.
 *
 * If one piece may be the cause, each is written alone. A pause is a piece of its own, so that it does not wait for a
 * refused step.
 *
 *     fails in passing (a lock)   set aside and tried again each second
 *     refused                     abandoned
 */
export function createOutcomeWriter<Written>(deps: OutcomeWriterDeps<Written>) {
  const unwritten = new Set<Piece>()
  let gathered: Piece[] = []
  let isWriting = false
  let aside: Piece[] = []
  let isWritingAside = false

  async function writeGathered(): Promise<void> {
    isWriting = true
    while (gathered.length > 0) {
      const group = [pieceOf({ ...empty, slots: deps.takeReturnable() }), ...gathered]
      gathered = []
      const end = await persist(merge(group.map(({ batch }) => batch)), group)
      for (const piece of group) await (end === 'written' ? piece.resolve() : writeAlone(piece))
    }
    isWriting = false
  }

  async function writeAlone(piece: Piece): Promise<void> {
    const end = await persist(piece.batch, [piece])
    if (end === 'moment') {
      aside.push(piece)
      if (!isWritingAside) void writeAside()
      return
    }
    if (end === 'piece') deps.onAbandoned(piece.error, piece.batch)
    piece.resolve()
  }

  /** Writes one at a time, so that only one connection waits for locks. */
  async function writeAside(): Promise<void> {
    isWritingAside = true
    while (aside.length > 0) {
      await deps.waitMs(asideMs)
      const pieces = aside
      aside = []
      for (const piece of pieces) await writeAlone(piece)
    }
    isWritingAside = false
  }

  async function persist(batch: OutcomeBatch, pieces: readonly Piece[]): Promise<'written' | 'moment' | 'piece'> {
    for (;;) {
      try {
        deps.onWritten(await deps.writeOutcomes(batch), batch)
        return 'written'
      } catch (error) {
        deps.onFailed(error, batch)
        for (const piece of pieces) piece.error = error
        const blame = deps.blameForDatabaseError(error)
        if (blame !== 'everyone') return blame
        await deps.waitMs(retryMs)
      }
    }
  }

  const pieceOf = (batch: OutcomeBatch): Piece => ({
    ...Promise.withResolvers<void>(),
    batch,
    sinceMs: deps.nowMs(),
    error: null,
  })

  return {
    async add({ transition, ...rest }: OutcomeWork): Promise<void> {
      const parts = [
        { ...rest, slots: [], transitions: [] },
        ...(transition ? [{ ...empty, transitions: [transition] }] : []),
      ]
      const pieces = parts.map(pieceOf)
      for (const piece of pieces) {
        unwritten.add(piece)
        void piece.promise.then(() => unwritten.delete(piece))
      }
      gathered.push(...pieces)
      if (!isWriting) void writeGathered()
      await Promise.all(pieces.map(({ promise }) => promise))
    },
    unwritten: (): UnwrittenOutcome[] =>
      [...unwritten].flatMap(({ batch, sinceMs, error }) =>
        batch.transitions.map(({ submission }) => ({ submissionId: submission.id, sinceMs, error })),
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
