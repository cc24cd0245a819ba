import { randomUUID } from 'node:crypto'
import { claimQueuedSubmissions } from '../../src/ledger/claims.ts'
import { writeTransitions } from '../../src/ledger/outcomes.ts'
import type { Submission, SubmissionStep } from '../../src/model/submission.ts'
import { openLedger } from './ledger.ts'

/** A ledger that shows whether the database accepts the row of a step. */
export interface AnyRow extends AsyncDisposable {
  /** Makes a submission that is being sent, with the given history. */
  sending(history: Partial<Submission>): Promise<Submission>
  /** Makes a submission whose poll is in hand, accepted or probing, with the given history. */
  polled(history: Partial<Submission>, probing: boolean): Promise<Submission>
  /** Writes a step as the daemon does. @returns the state in the table */
  write(submission: Submission, step: Pick<SubmissionStep, 'change' | 'cause' | 'message'>): Promise<unknown>
}

export async function openAnyRow(): Promise<AnyRow> {
  const ledger = await openLedger()

  async function write(
    submission: Submission,
    { change, cause, message }: Pick<SubmissionStep, 'change' | 'cause' | 'message'>,
  ): Promise<unknown> {
    await writeTransitions(ledger.pool, [{ submission, poll: null, change, cause, message }], 'test')
    return (await ledger.row(submission.id)).state
  }

  async function sending(history: Partial<Submission>): Promise<Submission> {
    const [id] = await ledger.capture([{ tracked: history.tracked ?? true }])
    await ledger.pool.query(
      `update outboxd.submission set in_doubt = $2, server_errors = $3, renewed_keys = $4, resubmissions = $5,
         repeated_after_401 = $6, polls = $7, fruitless = $8,
         unknown_since = clock_timestamp() - $9 * interval '1 ms', not_done_ms = $10,
         due_at = '-infinity'
       where id = $1`,
      [
        id,
        history.inDoubt ?? false,
        history.serverErrors ?? 0,
        history.renewedKeys ?? 0,
        history.resubmissions ?? 0,
        history.repeatedAfter401 ?? false,
        history.polls ?? 0,
        history.fruitless ?? 0,
        history.unknownForMs ?? null,
        history.notDoneMs ?? null,
      ],
    )
    const claim = { id: randomUUID(), instanceId: randomUUID(), limit: 1, who: 'test' }
    return (await claimQueuedSubmissions(ledger.pool, claim))[0] as Submission
  }

  return {
    sending,
    write,
    async polled(history, probing) {
      const sent = await sending(history)
      const poll = { pollInMs: 0, polledRarely: false, unknown: sent.unknownForMs !== null }
      await write(sent, {
        change: probing
          ? { state: 'sending', transactionId: sent.id, ...poll }
          : { state: 'accepted', transactionId: 'tx', ...poll },
        cause: 'asked_again',
        message: null,
      })
      return ledger.read(sent.id)
    },
    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  }
}
