import type { Outcome } from './service.ts'

export type PostAnswerMeaning =
  /** Accepted if the answer has an id. */
  | 'taken'
  /** The record becomes uncertain, or the id in Location is polled (RFC 9110, 15.4). */
  | 'performed'
  /** Sending pauses; the record may have arrived. */
  | 'moved'
  /** Rejected, because the data was judged. An earlier attempt would have got the same judgement. */
  | 'invalid'
  /** Sent again with a new token. After another 401 sending pauses. */
  | 'token-refused'
  /** Sending pauses. */
  | 'forbidden'
  /** Sending pauses, unless the body has the service's own error code. */
  | 'nothing-there'
  /** Rejected, but the record may have arrived. */
  | 'refused-in-doubt'
  /** Rejected. */
  | 'refused'
  | 'throttled'
  /** SERVER_ERRORS decides: sent again at most three times (docs/reference/interface.md, 7.1), or uncertain. */
  | 'server-error'
  | 'unavailable'
  /** UNCERTAIN_POLICY decides. */
  | 'in-doubt'

export type GetAnswerMeaning =
  | 'answered'
  | 'moved'
  | 'token-refused'
  | 'forbidden'
  | 'unknown'
  | 'throttled'
  | 'unavailable'
  | 'ask-again'

export type TokenAnswerMeaning =
  | 'answered'
  | 'moved'
  | 'wrong-address'
  /** The issuer refused the sign-in, so sending pauses. */
  | 'refused'
  | 'throttled'
  | 'unavailable'
  | 'unreachable'

export interface HttpStatusMeaning {
  statuses: string
  post: PostAnswerMeaning
  get: GetAnswerMeaning
  token: TokenAnswerMeaning
  /** True if E002 and E003 count before the status. False if the answer is probably not the service's own. */
  heedsCode: boolean
  /** E003 counts as `unavailable` if the code is heeded. */
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
 * docs/why/states.md prints this table.
 *
 * @see docs/reference/interface.md, 7.1; RFC 9110, 15
 */
export const httpStatusMeanings: readonly HttpStatusMeaning[] = [
  { statuses: '100-199', ...inDoubt },
  { statuses: '200-299', post: 'taken', get: 'answered', token: 'answered', heedsCode, outcome: 'ok' },
  { statuses: '300, 303-304', ...moved, post: 'performed' },
  { statuses: '301-302, 305-399', ...moved },
  { statuses: '400', ...refused, post: 'invalid' },
  { statuses: '401', ...forbidden, post: 'token-refused', get: 'token-refused', heedsCode: false },
  { statuses: '403', ...forbidden },
  { statuses: '404', ...refused, post: 'nothing-there', get: 'unknown', token: 'wrong-address' },
  { statuses: '405', ...refused, post: 'nothing-there', token: 'wrong-address' },
  // 407 comes from a proxy, so its code is not the service's.
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
  httpStatusMeanings.flatMap((row) =>
    row.statuses.split(', ').flatMap((range) => {
      const [first = Number.NaN, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, i) => [first + i, row] as const)
    }),
  ),
)
const beyond: HttpStatusMeaning = { statuses: 'any other', ...inDoubt }

export function meaningOfHttpStatus(status: number): HttpStatusMeaning {
  return byStatus.get(status) ?? beyond
}

/** Location is the address of what was created, or of its status (RFC 9110, 15.3.2 and 15.3.3). */
export const namesIdInLocation = (status: number): boolean => status === 201 || status === 202
