import fc from 'fast-check'
import type { Answer, NoAnswerCause } from '../../src/model/service.ts'
import { parseAndMaskJson } from '../../src/service/readJson.ts'
import { findAnyErrorCode } from '../../src/service/responses.ts'

/** Makes the client's answer for this status and body; a string is used as the body itself. */
export function response(status: number, body: unknown = '', retryAfterMs: number | null = null) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const json = parseAndMaskJson(text, [])
  return {
    kind: 'response',
    status,
    json,
    excerpt: text.slice(0, 2048),
    code: findAnyErrorCode(status, json, text),
    locationId: null as string | null,
    retryAfterMs,
    rateRemaining: null,
    dateMs: null,
    tookMs: 12,
  } as const satisfies Answer
}

export function noAnswer({ sent, cause }: { sent: boolean; cause: NoAnswerCause }) {
  return { kind: 'no-answer', sent, cause, detail: 'the connection was lost', tookMs: 12 } as const satisfies Answer
}

const code = fc.constantFrom('E001', 'E002', 'E003', 'E999', 'nonsense', '')
const word = fc.constantFrom('pending', 'completed', 'failed', 'accepted', 'cancelled', '')
/** Bodies near what the service says, and anything else. */
const body = fc.oneof(
  fc.record(
    { transactionId: fc.constantFrom('tx', 'other', ''), status: word, result: fc.jsonValue(), errorCode: code, code },
    { requiredKeys: [] },
  ),
  fc.record({ orderId: fc.constantFrom('tx', 'other'), status: word }, { requiredKeys: [] }),
  fc.jsonValue(),
  fc.string(),
)
const status = fc.oneof(
  fc.constantFrom(200, 201, 202, 204, 301, 307, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 504),
  fc.integer({ min: 100, max: 999 }),
)

/** Any answer that a network and a broken service could give. */
export const anyAnswer: fc.Arbitrary<Answer> = fc.oneof(
  fc.tuple(status, body, fc.option(fc.nat())).map(([status, body, retry]): Answer => response(status, body, retry)),
  fc
    .record({ sent: fc.boolean(), cause: fc.constantFrom('timeout' as const, 'network' as const) })
    .map((how): Answer => noAnswer(how)),
)
