import { setTimeout } from 'node:timers/promises'
import type { BreakerSign, OutcomeBatch } from '../../model/dispatch.ts'
import type { Change, Transition } from '../../model/submission.ts'
import { classifyDatabaseError } from '../../postgres/database.ts'
import type { DaemonContext } from '../context.ts'

export interface UnwrittenOutcome {
  submissionId: string
  sinceMs: number
  error: unknown
}

export type OutcomeToWrite = Omit<OutcomeBatch, 'transitions'> & { transition: Transition | null }

export const emptyOutcome: OutcomeToWrite = {
  transition: null,
  answeredRequests: [],
  unsentRequests: [],
  answers: [],
  remaining: null,
}

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
 *     refused without the texts, too   given up: the record stays `sending` until the loop `orphans` settles it
 */
export class OutcomeWriter {
  readonly #write: (batch: OutcomeBatch) => Promise<void>
  readonly #daemon: DaemonContext
  readonly #waitMs: (ms: number) => Promise<unknown>
  readonly #unwritten = new Set<Piece>()
  #gathered: Piece[] = []
  #isWriting = false
  #aside: Piece[] = []
  #isWritingAside = false

  /** @param write writes a batch in one transaction */
  constructor(
    write: (batch: OutcomeBatch) => Promise<void>,
    daemon: DaemonContext,
    waitMs: (ms: number) => Promise<unknown> = setTimeout,
  ) {
    this.#write = write
    this.#daemon = daemon
    this.#waitMs = waitMs
  }

  /** Resolves when the outcome is written or given up. */
  async add({ transition, ...rest }: OutcomeToWrite): Promise<void> {
    const piece: Piece = {
      ...Promise.withResolvers<void>(),
      batch: { ...rest, transitions: transition === null ? [] : [transition] },
      sinceMs: this.#daemon.clock.nowMs(),
      error: null,
    }
    this.#unwritten.add(piece)
    this.#gathered.push(piece)
    if (!this.#isWriting) void this.#writeGathered()
    await piece.promise
    this.#unwritten.delete(piece)
  }

  unwritten(): UnwrittenOutcome[] {
    return [...this.#unwritten].flatMap(({ batch, sinceMs, error }) =>
      batch.transitions.map(({ submission }) => ({ submissionId: submission.id, sinceMs, error })),
    )
  }

  async #writeGathered(): Promise<void> {
    this.#isWriting = true
    while (this.#gathered.length > 0) {
      const group = this.#gathered
      this.#gathered = []
      const end = await this.#persist(merge(group.map(({ batch }) => batch)), group)
      for (const piece of group) await (end === 'written' ? piece.resolve() : this.#writeAlone(piece))
    }
    this.#isWriting = false
  }

  async #writeAlone(piece: Piece): Promise<void> {
    const { batch } = piece
    let end = await this.#persist(batch, [piece])
    if (end !== 'written' && batch.transitions.length > 0 && hasRest(batch)) {
      const rest = { ...(end === 'piece' ? withoutTexts(batch, piece.error) : batch), transitions: [] }
      await this.#persist(rest, [])
      piece.batch = { ...emptyBatch, transitions: batch.transitions }
      return this.#writeAlone(piece)
    }
    if (end === 'piece') {
      this.#tell(
        'database refused an outcome: the daemon writes it without the texts of the answer',
        piece.error,
        batch,
      )
      end = await this.#persist(withoutTexts(batch, piece.error), [piece])
      if (end === 'piece') this.#tell(givenUpMessage, piece.error, batch)
    }
    if (end !== 'moment') return piece.resolve()
    this.#aside.push(piece)
    if (!this.#isWritingAside) void this.#writeAside()
  }

  /** Writes one outcome at a time, so that only one connection waits for locks. */
  async #writeAside(): Promise<void> {
    this.#isWritingAside = true
    while (this.#aside.length > 0) {
      await this.#waitMs(asideMs)
      const pieces = this.#aside
      this.#aside = []
      for (const piece of pieces) await this.#writeAlone(piece)
    }
    this.#isWritingAside = false
  }

  async #persist(batch: OutcomeBatch, pieces: readonly Piece[]): Promise<'written' | 'moment' | 'piece'> {
    for (;;) {
      try {
        await this.#write(batch)
        return 'written'
      } catch (error) {
        this.#tell('outcome could not be written: the daemon tries again', error, batch)
        for (const piece of pieces) piece.error = error
        const blame = classifyDatabaseError(error, 'outcome')
        if (blame !== 'everyone') return blame
        await this.#waitMs(retryMs)
      }
    }
  }

  #tell(message: string, error: unknown, { transitions }: OutcomeBatch): void {
    const submission = transitions[0]?.submission
    this.#daemon.log.error(message, {
      error,
      submissionId: submission?.id,
      outboxId: submission?.outboxId,
      count: transitions.length,
    })
  }
}

const givenUpMessage = 'database refused an outcome twice: the daemon settles the record as if the answer had been lost'

const { transition: _, ...nothingElse } = emptyOutcome
export const emptyBatch: OutcomeBatch = { ...nothingElse, transitions: [] }

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
