import type { BreakerSign, OutcomeBatch } from '../../model/dispatch.ts'
import type { Change, Transition } from '../../model/submission.ts'

export interface UnwrittenOutcome {
  submissionId: string
  sinceMs: number
  error: unknown
}

export interface OutcomeWriterDeps<Written> {
  nowMs(): number
  writeOutcomes(batch: OutcomeBatch): Promise<Written>
  /** @see src/postgres/sqlState.ts */
  classifyDatabaseError(error: unknown): 'moment' | 'piece' | 'everyone'
  onWritten(result: Written, batch: OutcomeBatch): void
  onFailed(error: unknown, batch: OutcomeBatch): void
  onTextsLeftOut(error: unknown, batch: OutcomeBatch): void
  /** Called when an outcome is given up. The record stays `sending` until the loop `orphans` settles the record. */
  onAbandoned(error: unknown, batch: OutcomeBatch): void
  waitMs(ms: number): Promise<void>
}

export type OutcomeToWrite = Omit<OutcomeBatch, 'transitions'> & { transition: Transition | null }

export const emptyOutcome: OutcomeToWrite = {
  transition: null,
  answeredRequests: [],
  unsentRequests: [],
  answers: [],
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
 * Writes outcomes in groups: one write at a time, each with all outcomes that have gathered meanwhile. If the database
 * fails, the write is repeated until it succeeds. The fences make repeats harmless.
 *
 * If one outcome may be the cause of an error, each outcome is written alone. If a step is refused or has to wait, the
 * rest of its outcome is written apart, because the breaker must open now.
 *
 *     a passing failure (a lock)       tried again each second, apart from the others
 *     refused by the database          written without the texts of the answer
 *     refused without the texts, too   given up
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
      const group = gathered
      gathered = []
      const end = await persist(merge(group.map(({ batch }) => batch)), group)
      for (const piece of group) await (end === 'written' ? piece.resolve() : writeAlone(piece))
    }
    isWriting = false
  }

  async function writeAlone(piece: Piece): Promise<void> {
    const { batch } = piece
    let end = await persist(batch, [piece])
    if (end !== 'written' && batch.transitions.length > 0 && hasRest(batch)) {
      const rest = { ...(end === 'piece' ? withoutTexts(batch, piece.error) : batch), transitions: [] }
      await persist(rest, [])
      piece.batch = { ...nothing, transitions: batch.transitions }
      return writeAlone(piece)
    }
    if (end === 'piece') {
      deps.onTextsLeftOut(piece.error, batch)
      end = await persist(withoutTexts(batch, piece.error), [piece])
      if (end === 'piece') deps.onAbandoned(piece.error, batch)
    }
    if (end !== 'moment') return piece.resolve()
    aside.push(piece)
    if (!isWritingAside) void writeAside()
  }

  /** Writes one outcome at a time, so that only one connection waits for locks. */
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
        const blame = deps.classifyDatabaseError(error)
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
    async add({ transition, ...rest }: OutcomeToWrite): Promise<void> {
      const piece = pieceOf({ ...rest, transitions: transition === null ? [] : [transition] })
      unwritten.add(piece)
      gathered.push(piece)
      if (!isWriting) void writeGathered()
      await piece.promise
      unwritten.delete(piece)
    },
    unwritten: (): UnwrittenOutcome[] =>
      [...unwritten].flatMap(({ batch, sinceMs, error }) =>
        batch.transitions.map(({ submission }) => ({ submissionId: submission.id, sinceMs, error })),
      ),
  }
}

const { transition: _, ...nothingElse } = emptyOutcome
const nothing: OutcomeBatch = { ...nothingElse, transitions: [] }

const hasRest = ({ answers, answeredRequests, unsentRequests, remaining }: OutcomeBatch): boolean =>
  answers.length + answeredRequests.length + unsentRequests.length > 0 || remaining !== null

function merge(batches: readonly OutcomeBatch[]): OutcomeBatch {
  const remaining = batches.flatMap((each) => each.remaining ?? [])
  return {
    transitions: batches.flatMap((each) => each.transitions),
    answeredRequests: batches.flatMap((each) => each.answeredRequests),
    unsentRequests: batches.flatMap((each) => each.unsentRequests),
    answers: batches.flatMap((each) => each.answers),
    remaining:
      remaining.length === 0
        ? null
        : {
            requests: Math.min(...remaining.map(({ requests }) => requests)),
            ageMs: () => Math.max(...remaining.map(({ ageMs }) => ageMs())),
          },
  }
}

/**
 * Removes texts of the answer, except codes and ids that any database can hold. A record that loses its transaction id
 * becomes uncertain, because it cannot be polled.
 */
function withoutTexts(batch: OutcomeBatch, error: unknown): OutcomeBatch {
  const why = `the ledger refused the texts of the answer (${errorCodeOf(error)}), so they are left out`
  return {
    ...batch,
    transitions: batch.transitions.map((each) => ({ ...each, change: bareChange(each.change, why), message: why })),
    answers: batch.answers.map((answer) => ({ ...answer, sign: withoutDetail(answer.sign, why) })),
  }
}

const withoutDetail = (sign: BreakerSign, why: string): BreakerSign =>
  sign.kind === 'fails' ? { ...sign, code: null, pause: { ...sign.pause, detail: why } } : sign

function bareChange(change: Change, why: string): Change {
  const bare = { ...change }
  if ('error' in bare) bare.error = why
  if ('errorCode' in bare && !isPlain(bare.errorCode)) bare.errorCode = null
  if ('result' in bare) bare.result = null
  if ('foreignStatus' in bare) bare.foreignStatus = null
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
