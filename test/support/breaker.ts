import type { BreakerAnswer, BreakerSign, RequestPurpose } from '../../src/model/dispatch.ts'
import type { PauseToRaise } from '../../src/model/service.ts'
import type { Database } from '../../src/postgres/database.ts'

/** Opens the breaker in the ledger. @param given.forMs null: until a person acts; negative: its trial is due */
export async function openBreaker(
  db: Database,
  given: { cause?: PauseToRaise['reason']; forMs?: number | null; agoMs?: number; detail?: string } = {},
): Promise<void> {
  const { cause = 'unavailable', forMs = 240_000, agoMs = 0, detail = 'E003' } = given
  await db.query(
    `insert into outboxd.pause (reason, state, cause, since, until, detail, level, is_of_submission, is_in_doubt,
       has_get_worked, doubts)
     values ('breaker', 'open', $1, clock_timestamp() - $2 * interval '1 ms', clock_timestamp() + $3::float8 * interval '1 ms',
       $4, 0, false, false, false, 0)
     on conflict (reason) do update set state = 'open', cause = excluded.cause, since = excluded.since,
       until = excluded.until, detail = excluded.detail, trial = null, trial_until = null`,
    [cause, agoMs, forMs, detail],
  )
}

type Fails = BreakerSign & { kind: 'fails' }

/** Makes a sign that opens the breaker. */
export function fails(reason: PauseToRaise['reason'] = 'unavailable', given: Partial<Fails> = {}): Fails {
  return {
    kind: 'fails',
    pause: { reason, askedMs: null, detail: `${reason} it says` },
    code: null,
    isOfRecord: true,
    isOfSubmission: false,
    isInDoubt: false,
    isForbiddenGet: false,
    ...given,
  }
}

export const breakerAnswer = (
  request: RequestPurpose,
  requestId: string | null,
  sign: BreakerSign,
  submissionId: string | null = null,
): BreakerAnswer => ({ request, requestId, submissionId, sign })
