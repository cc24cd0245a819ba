import { type Exchange, isSuccess, nameOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { acceptedShape, submissionSample, submit } from '../samples/submission.ts'

const largestBytes = 16 * 1_048_576
/** One for what a body has besides, from 32 kB to the largest, doubling, and then two halvings. */
const stepsMax = 10 + 3

export const bodySize: Question = {
  name: 'body-size',
  section: '8',
  asks: 'how large a body may be, by steps',
  requestsMax: stepsMax,
  recordsMax: stepsMax,
  samples: [submissionSample],
  needs: ['customer', 'size'],
  harmless: false,
  async run(parts) {
    const shape = await acceptedShape(parts)
    const base = (await submit(parts, shape, '')).body?.length ?? 0
    const ofBytes = (bytes: number) =>
      submit(parts, shape, '', { data: { padding: 'x'.repeat(Math.max(0, bytes - base - ',"padding":""'.length)) } })
    return judgeBodySize(await findLimit(ofBytes), parts.config.payloadMaxBytes)
  },
}

interface SizeFound {
  /** Bytes that were taken, 0 where none were. */
  taken: number
  /** The least that were refused, and how; null where none were. */
  refused: { bytes: number; exchange: Exchange } | null
}

async function findLimit(send: (bytes: number) => Promise<Exchange>): Promise<SizeFound> {
  let found: SizeFound = { taken: 0, refused: null }
  for (let bytes = 32_768; bytes <= largestBytes && found.refused === null; bytes *= 2)
    found = await narrow(found, bytes, send)
  for (let halving = 0; halving < 2 && found.refused !== null; halving++)
    found = await narrow(found, Math.round((found.taken + found.refused.bytes) / 2), send)
  return found
}

async function narrow(found: SizeFound, bytes: number, send: (bytes: number) => Promise<Exchange>): Promise<SizeFound> {
  const exchange = await send(bytes)
  return isSuccess(exchange.answer) ? { ...found, taken: bytes } : { ...found, refused: { bytes, exchange } }
}

/** Pure. */
export function judgeBodySize({ taken, refused }: SizeFound, payloadMaxBytes: number): Finding {
  const assumed = `payloads of up to ${payloadMaxBytes} bytes (PAYLOAD_MAX_BYTES)`
  if (refused === null) return sure(`more than ${taken}`, `${taken} bytes were taken`, { assumed })
  if (taken === 0)
    return unknown(`${refused.bytes} bytes were answered ${nameOf(refused.exchange.answer)}`, { assumed })
  const why = `${taken} bytes were taken, ${refused.bytes} were answered ${nameOf(refused.exchange.answer)}`
  const differs = taken < payloadMaxBytes
  const set = differs
    ? [
        {
          variable: 'PAYLOAD_MAX_BYTES',
          value: String(taken),
          why: `${why}: a payload that maps to more is rejected unread`,
        },
      ]
    : []
  return sure(String(taken), why, { assumed, differs, set })
}
