import type { Outcome } from './service.ts'

/** What a status says about a record that was sent (POST). */
export type PostMeaning =
  /** The service took it: accepted if the answer has an id. */
  | 'taken'
  /** The request was performed and the answer is elsewhere (RFC 9110, 15.4.1, 15.4.4, 15.4.5). Sent again only for what GET says: docs/guarantee.md. */
  | 'performed'
  /** Another address: everybody pauses, and the record may have arrived. */
  | 'moved'
  /** The service judged the data, and would have judged an earlier attempt the same way. */
  | 'invalid'
  /** The token was refused: a new one, then a pause. */
  | 'token-refused'
  /** We may not do this: everybody pauses. */
  | 'forbidden'
  /** Nothing takes records at that address: everybody pauses, unless the service itself speaks. */
  | 'nothing-there'
  /** Refused, for a reason that does not say that nothing was stored. */
  | 'refused-in-doubt'
  | 'refused'
  | 'throttled'
  /** Sent again, at most three times (docs/interface.md, 7.1). */
  | 'server-error'
  | 'unavailable'
  /** It may or may not have arrived: UNCERTAIN_POLICY. */
  | 'in-doubt'

/** What a status says about a transaction that was asked for (GET). */
export type GetMeaning =
  | 'answered'
  | 'moved'
  | 'token-refused'
  | 'forbidden'
  | 'unknown'
  | 'throttled'
  | 'unavailable'
  | 'ask-again'

/** What a status says about a request for a token. Each but a success with a token is a pause. */
export type TokenMeaning =
  | 'answered'
  | 'moved'
  | 'wrong-address'
  | 'refused'
  | 'throttled'
  | 'unavailable'
  | 'unreachable'

/** What the statuses of one row of the table mean. */
export interface StatusRow {
  /** Statuses and ranges of them, such as `301-302, 305-399`. */
  statuses: string
  post: PostMeaning
  get: GetMeaning
  token: TokenMeaning
  /** Whether E002 and E003 come before the status. Not if it speaks of us, or if the answer is hardly the service's own. */
  heedsCode: boolean
  /** How such a request is counted; E003 is `unavailable` if the code is heeded. */
  outcome: Outcome
}

const heedsCode = true
const inDoubt = {
  post: 'in-doubt',
  get: 'ask-again',
  token: 'unreachable',
  heedsCode,
  outcome: 'server_error',
} as const
const moved = { post: 'moved', get: 'moved', token: 'moved', heedsCode: false, outcome: 'unauthorized' } as const
const refused = { post: 'refused', get: 'ask-again', token: 'refused', heedsCode, outcome: 'rejected' } as const
const forbidden = { ...refused, post: 'forbidden', get: 'forbidden', outcome: 'unauthorized' } as const
const throttled = { post: 'throttled', get: 'throttled', token: 'throttled', heedsCode, outcome: 'throttled' } as const
const away = {
  post: 'unavailable',
  get: 'unavailable',
  token: 'unavailable',
  heedsCode,
  outcome: 'unavailable',
} as const

/**
 * What every status of HTTP means, by what was asked. The one place that says so: the decisions about answers look here,
 * and docs/guarantee.md prints it.
 *
 * @see docs/interface.md, 7.1, for 400, 401, 429 and 500; RFC 9110, 15, for the others
 */
export const statusRows: readonly StatusRow[] = [
  { statuses: '100-199', ...inDoubt },
  { statuses: '200-299', post: 'taken', get: 'answered', token: 'answered', heedsCode, outcome: 'ok' },
  { statuses: '300, 303-304', ...moved, post: 'performed' },
  { statuses: '301-302, 305-399', ...moved },
  { statuses: '400', ...refused, post: 'invalid' },
  { statuses: '401', ...forbidden, post: 'token-refused', get: 'token-refused', heedsCode: false },
  { statuses: '403', ...forbidden },
  { statuses: '404', ...refused, post: 'nothing-there', get: 'unknown', token: 'wrong-address' },
  { statuses: '405', ...refused, post: 'nothing-there', token: 'wrong-address' },
  // A proxy between us and the service asks for a password: the code is not the service's.
  { statuses: '407', ...forbidden, heedsCode: false },
  { statuses: '408-409, 425, 499', ...refused, post: 'refused-in-doubt' },
  { statuses: '410', ...refused, post: 'nothing-there' },
  { statuses: '429', ...throttled },
  { statuses: '402, 406, 411-424, 426-428, 430-498', ...refused },
  { statuses: '500', ...inDoubt, post: 'server-error' },
  { statuses: '503', ...away },
  { statuses: '501-502, 504-599', ...inDoubt },
]

const byStatus = new Map(
  statusRows.flatMap((row) =>
    row.statuses.split(', ').flatMap((range) => {
      const [first = Number.NaN, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, i) => [first + i, row] as const)
    }),
  ),
)
const beyond: StatusRow = { statuses: 'any other', ...inDoubt }

/** The row of a status. A number that is not a status of HTTP says as little as 502. */
export function statusRow(status: number): StatusRow {
  return byStatus.get(status) ?? beyond
}
