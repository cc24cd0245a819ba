import type { OutcomeBatch, Transition } from '../../model.ts'

/** An outcome that waits to be written. */
export interface UnwrittenOutcome {
  submissionId: string
  /** Since when, on the clock of this host. */
  sinceMs: number
  /** What its last write failed with; null where it has not, or not yet. */
  error: unknown
}

export interface OutcomeWriterDeps<Written> {
  nowMs(): number
  writeOutcomes(batch: OutcomeBatch): Promise<Written>
  /** Slots that can go back with the next write. */
  takeReturnable(): OutcomeBatch['slots']
  /** Whether the database refuses the work itself, and would again; anything else may pass. */
  isRefusal(error: unknown): boolean
  /** Whether somebody's lock stood in the way for too long, perhaps of one piece alone. */
  isLock(error: unknown): boolean
  onWritten(result: Written, batch: OutcomeBatch): void
  /** A write failed; it is tried again. */
  onFailed(error: unknown, batch: OutcomeBatch): void
  /** One piece was refused for good. The ledger goes on saying that it is on the wire, until it is rescued as an orphan. */
  onAbandoned(error: unknown, batch: OutcomeBatch): void
  waitMs(ms: number): Promise<void>
}

/** What one piece of work has come to. */
export type Work = Omit<OutcomeBatch, 'slots' | 'transitions'> & { transition: Transition | null }

/** Work without a step: to give slots back, or for what is put on top. */
export const nothing: Work = {
  transition: null,
  pauses: [],
  passages: [],
  refusals: [],
  trialSucceeded: false,
  trialEnded: false,
  remaining: null,
}

export interface OutcomeWriter {
  /** Writes one piece of work as soon as the write before it is through, together with whatever has come by then. */
  add(work: Work): Promise<void>
  /** The outcomes that are not written yet, the oldest first. */
  unwritten(): UnwrittenOutcome[]
}

const retryMs = 500
const asideMs = 1_000

interface Piece {
  batch: OutcomeBatch
  sinceMs: number
  error: unknown
  done: () => void
}

type Persisted = { kind: 'written' } | { kind: 'refused'; error: unknown } | { kind: 'locked' }

/**
 * Writes the outcomes of work in groups: one write at a time, each taking all that has gathered. Idle, an answer is
 * written at once; under load a write carries dozens. A write that fails is repeated until it succeeds, as nothing may
 * be forgotten whose request has left; the fences make repeating harmless. Only what the database refuses by itself is
 * given up, or everything after it would wait for ever. And what somebody's lock holds up is written apart, as soon as
 * that lets go: the others do not wait for it.
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
      const slots = pieceOf({ ...empty, slots: deps.takeReturnable() }, () => {})
      const whole = merge([...group, slots].map(({ batch }) => batch))
      const { kind } = await persist(whole, group)
      if (kind === 'locked') for (const piece of [slots, ...group]) await writeApart(piece)
      if (kind === 'refused') await persistEach(whole, group)
      if (kind !== 'locked') for (const { done } of group) done()
    }
    writing = false
  }

  async function writeApart(piece: Piece): Promise<void> {
    const { kind } = await persist(piece.batch, [piece])
    if (kind === 'locked') {
      aside.push(piece)
      if (!writingAside) void writeAside()
      return
    }
    if (kind === 'refused') await persistEach(piece.batch, [piece])
    piece.done()
  }

  /** One at a time, so that waiting for locks takes up one connection at most. */
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

  async function persist(batch: OutcomeBatch, pieces: readonly Piece[]): Promise<Persisted> {
    for (;;) {
      try {
        deps.onWritten(await deps.writeOutcomes(batch), batch)
        return { kind: 'written' }
      } catch (error) {
        if (deps.isRefusal(error)) return { kind: 'refused', error }
        deps.onFailed(error, batch)
        for (const piece of pieces) piece.error = error
        if (deps.isLock(error)) return { kind: 'locked' }
        await deps.waitMs(retryMs)
      }
    }
  }

  /** The database refuses the group: whichever piece it is, the others are not to wait for it. */
  async function persistEach({ transitions, ...rest }: OutcomeBatch, pieces: readonly Piece[]): Promise<void> {
    const parts = [
      { ...rest, transitions: [] },
      ...transitions.map((transition) => ({ ...empty, transitions: [transition] })),
    ]
    for (const part of parts) await persistOrGiveUp(part, pieces)
  }

  async function persistOrGiveUp(batch: OutcomeBatch, pieces: readonly Piece[]): Promise<void> {
    for (;;) {
      const persisted = await persist(batch, pieces)
      if (persisted.kind === 'refused') deps.onAbandoned(persisted.error, batch)
      if (persisted.kind !== 'locked') return
      await deps.waitMs(retryMs)
    }
  }

  const pieceOf = (batch: OutcomeBatch, done: () => void): Piece => ({
    batch,
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
      [...unwritten].flatMap(({ batch, sinceMs, error }) =>
        batch.transitions.map(({ submission }) => ({ submissionId: submission.id, sinceMs, error })),
      ),
  }
}

const { transition: _, ...nothingElse } = nothing
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
    remaining: remaining.length > 0 ? Math.min(...remaining) : null,
  }
}
