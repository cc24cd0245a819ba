import type { DiscoverConfig } from '../../config.ts'
import { resources } from '../../resources.ts'
import {
  type AnsweredExchange,
  type Exchange,
  endedAtMs,
  fieldOf,
  isRefusal,
  isSuccess,
  lineOf,
  nameOf,
  type Response,
  type Seen,
} from '../exchange.ts'
import { type Finding, likely, showMs, sure, unknown } from '../finding.ts'
import type { Parts } from '../question.ts'
import {
  type Amounts,
  acceptedRecord,
  acceptedShape,
  amountIn,
  amountsSample,
  hasEnded,
  idIn,
  type Life,
  lifeSample,
  type Mapped,
  type OwnIds,
  placeRead,
  type Repeats,
  readShape,
  recognised,
  statusIn,
  submissionSample,
  submit,
} from '../samples/records.ts'

export async function askSubmission(parts: Parts): Promise<Finding> {
  const { tried } = await parts.sample(submissionSample)
  const last = tried.at(-1)
  return last === undefined ? unknown('no record was sent') : judgeSubmission(last.answer, idIn(last))
}

/** @param id as the daemon reads it. Pure */
export function judgeSubmission(seen: Response, id: string | null): Finding {
  const assumed = '200 with a transactionId'
  const line = lineOf(seen)
  if (!isSuccess(seen))
    return unknown(`no record was taken: ${line}`, { assumed, cannot: `a record is answered ${nameOf(seen)}` })
  if (id === null)
    return sure(`${seen.status} without ${resources.data.idField}`, line, {
      assumed,
      differs: true,
      cannot: `an answer without a ${resources.data.idField} that can be read: each record becomes uncertain, as nobody can ask for it`,
    })
  const isNumber = typeof fieldOf(seen.json, resources.data.idField) !== 'string'
  const more = Object.keys(Object(seen.json)).filter((name) => !['transactionId', 'status', 'timestamp'].includes(name))
  const why = [
    line,
    isNumber ? 'the id is a number, and kept with its digits' : null,
    more.length > 0 ? `more fields, which are ignored: ${more.join(', ')}` : null,
  ]
  const contract = { submit_ok: String(seen.status) }
  return sure(String(seen.status), why.filter((each) => each !== null).join('; '), {
    assumed,
    differs: seen.status !== 200,
    contract,
  })
}

export async function askTransactionId(parts: Parts): Promise<Finding> {
  const { id } = await acceptedRecord(parts)
  return sure(formOf(id), `such as ${id}`, { assumed: 'any text of up to 255 characters' })
}

/** Pure. */
export function formOf(id: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return 'uuid'
  if (/^\d+$/.test(id)) return 'digits'
  return /^[\w.~-]+$/.test(id) ? 'word' : 'characters that a path must encode'
}

/** docs/contract.md: what the daemon reads as pending, and as an end. */
const readStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])

/** Pure. */
export function judgeStatusValues({ polls }: Pick<Life, 'polls'>): Finding {
  const assumed = 'accepted or pending, then completed or failed'
  const said = polls.map(statusIn)
  const statuses = [...new Set(said.filter((status) => status !== null))]
  const last = polls.at(-1)
  if (statuses.length === 0 || last === undefined)
    return unknown(last === undefined ? 'nobody asked' : `no status can be read: ${lineOf(last.answer)}`, {
      assumed,
      differs: last !== undefined,
      cannot:
        last === undefined
          ? null
          : 'an answer without a status counts as a breach of contract, and the transaction is asked for again and again',
    })
  const found = statuses.join(', ')
  const foreign = statuses.filter((status) => !readStatuses.has(status.trim().toLowerCase()))
  const why = `${said.length} questions: ${said.map((status) => status ?? 'none').join(', ')}`
  if (foreign.length > 0)
    return sure(found, why, {
      assumed,
      differs: true,
      cannot: `${foreign.join(', ')} is no status that the daemon knows: it counts a breach of contract and asks again, so a record whose last status it is never ends`,
    })
  if (!said.some(hasEnded)) return likely(found, `${why}; its end was not seen`, { assumed })
  return sure(found, why, { assumed })
}

/** Between the last poll at which it was not done and the first at which it was. Pure. */
export function judgeProcessingTime({ acceptedAtMs, polls }: Life): Finding {
  const done = polls.find((poll) => hasEnded(statusIn(poll)))
  const before = polls.findLast((poll) => !hasEnded(statusIn(poll)))
  const assumed = 'any: it is learnt'
  if (done === undefined) {
    const waitedMs = before === undefined ? 0 : endedAtMs(before) - acceptedAtMs
    return unknown(`one was not done after ${showMs(waitedMs)}`, { assumed })
  }
  const mostMs = endedAtMs(done) - acceptedAtMs
  const leastMs = before === undefined ? 0 : Math.max(0, before.startedAtMs - acceptedAtMs)
  return likely(`${showMs(leastMs)} to ${showMs(mostMs)}`, 'one transaction; others may take otherwise', { assumed })
}

export async function askResult(parts: Parts): Promise<Finding> {
  const last = (await parts.sample(lifeSample)).polls.findLast((poll) => hasEnded(statusIn(poll)))
  return last === undefined ? unknown('the transaction had not ended', assumedResult) : judgeResult(last.answer)
}

const assumedResult = { assumed: 'any JSON, or none' }

/** Pure. */
export function judgeResult(seen: Seen): Finding {
  const json = seen.kind === 'response' ? fieldOf(seen.json, 'result') : undefined
  return json === undefined || json === null
    ? sure('none', 'the answer has no result', assumedResult)
    : sure(typeOf(json), `result is ${JSON.stringify(json).slice(0, 200)}; it is kept as it came`, assumedResult)
}

function typeOf(json: unknown): string {
  if (Array.isArray(json)) return 'list'
  if (JSON.isRawJSON(json)) return 'number'
  return typeof json === 'object' && json !== null ? `object: ${Object.keys(json).join(', ')}` : typeof json
}

/** Pure. */
export function judgeMappedFields(mapped: Mapped): Finding {
  const assumed = 'in data, as mappings/data.yaml sends them'
  if (mapped.taken.place === 'nowhere')
    return sure('refused', 'a record with these fields in data was refused, one without them was taken', {
      assumed,
      differs: true,
      advice: ['take customer_id, order_date and total_amount out of the mapping’s `body`; ask where they belong'],
    })
  const place = placeRead(mapped)
  const { without, wrongInData, wrongBeside } = mapped
  if (without === null) return unknown('a record without them was not answered', { assumed })
  const isRequired = isRefusal(without.answer)
  const why = [
    wrongInData && `a wrong amount in data: ${nameOf(wrongInData.answer)}`,
    wrongBeside && `beside data: ${nameOf(wrongBeside.answer)}`,
    `without them: ${lineOf(without.answer)}`,
  ]
  const said = why.filter((each) => each !== null).join('; ')
  if (place === null) {
    if (isRequired) return unknown(said, { assumed })
    return sure('ignored', said, {
      assumed,
      differs: true,
      advice: [
        'nobody looks at amount, date and customer_id where mappings/data.yaml puts them: ask where they belong',
      ],
    })
  }
  const found = `${place === 'data' ? 'in data' : 'beside data'}, ${isRequired ? 'required' : 'optional'}`
  if (place === 'data') return sure(found, said, { assumed })
  const advice = [
    'in the mapping’s `body`, put customer_id, order_date and total_amount beside data: within it, nobody looks at them',
  ]
  return sure(found, said, { assumed, differs: true, advice })
}

type Policy = DiscoverConfig['uncertainPolicy']

/** `other key` tells a service that knows the key from one that knows the content. Pure. */
export function judgeIdempotency({ first, again, otherKey }: Repeats, policy: Policy): Finding {
  const assumed = `ignored, unless UNCERTAIN_POLICY is resend (it is ${policy})`
  const why = `first ${lineOf(first.answer)}; again ${lineOf(again.answer)}; under another key ${lineOf(otherKey.answer)}`
  if (idIn(first) === null) return unknown(`the first was not taken: ${lineOf(first.answer)}`, { assumed })
  const byKey = recognised(first, again)
  const byContent = recognised(first, otherKey)
  if (byKey === null) return unknown(why, { assumed })
  if (byKey === 'no') return ignored(why, policy)
  if (byContent !== 'no')
    return sure('by content', `${why}: it is known by its content, under any key`, {
      assumed,
      differs: true,
      set: [hold('two records of the same content count as one: a second is no failure to send')],
      cannot: byKey === 'other' ? refusedRepeat : null,
    })
  if (byKey === 'other')
    return sure(`refused with ${nameOf(again.answer)}`, why, {
      assumed,
      differs: true,
      set: [hold('what was sent twice is refused without E002')],
      cannot: refusedRepeat,
    })
  const resend = {
    variable: 'UNCERTAIN_POLICY',
    value: 'resend',
    why:
      byKey === 'same id'
        ? 'a request that is sent again under its key gets the first answer'
        : 'a request that arrived is E002 when it is sent again, and stored once',
  }
  return sure(byKey === 'same id' ? 'replay' : 'e002', why, { assumed, differs: policy === 'hold', set: [resend] })
}

const refusedRepeat =
  'a repetition is refused without E002: after an attempt in doubt the daemon cannot tell a record that arrived from one that is wrong'

const hold = (why: string) => ({ variable: 'UNCERTAIN_POLICY', value: 'hold', why })

function ignored(why: string, policy: Policy): Finding {
  const assumed = policy === 'resend' ? 'recognised, as UNCERTAIN_POLICY=resend says' : 'ignored'
  return sure('ignored', `${why}: two transactions`, {
    assumed,
    differs: policy === 'resend',
    set: [hold('the service does not know a request again: whatever is sent twice is there twice')],
  })
}

/** Pure. */
export function judgeIdempotencyHeader({ header, first, again, otherKey }: Repeats, assumed: string): Finding {
  const byKey = recognised(first, again)
  if (byKey === null) return unknown('a repeated request was not answered', { assumed })
  if (byKey === 'no')
    return sure('none', 'neither Idempotency-Key nor its usual other names are looked at', { assumed })
  if (recognised(first, otherKey) !== 'no')
    return sure('none', 'a record is known by its content, under any key', { assumed })
  const why = `a record that was sent again under the same ${header} was recognised, under another it was not`
  const set = [{ variable: 'IDEMPOTENCY_HEADER', value: header, why }]
  return sure(header, why, { assumed, differs: header.toLowerCase() !== assumed.toLowerCase(), set })
}

/** Pure. */
export function judgeOwnId({ id, first, again }: OwnIds): Finding {
  const assumed = 'no: mappings send none'
  const line = lineOf(first.answer)
  if (isRefusal(first.answer)) return sure('refused', line, { assumed })
  if (!isSuccess(first.answer)) return unknown(line, { assumed })
  if (idIn(first) !== id) return sure('ignored', `sent ${id}, answered ${idIn(first) ?? 'without an id'}`, { assumed })
  const second = again === null ? 'was not sent' : `was answered ${nameOf(again.answer)}`
  return sure('taken', `sent ${id}, and that is its transactionId; another record with it ${second}`, {
    assumed,
    differs: true,
    advice: [
      'a mapping may put `transactionId: ${submission.id}` into its body; then UNCERTAIN_POLICY=probe asks for a record in doubt by that id',
    ],
    cannot:
      again !== null && isSuccess(again.answer)
        ? 'two records may have the same id: with probe, one may be taken for the other'
        : null,
  })
}

export async function askAmount(parts: Parts): Promise<Finding> {
  const amounts = await parts.sample(amountsSample)
  const shape = await readShape(parts)
  return judgeAmount(amounts, await submit(parts, shape, 'an amount of three decimals', amountIn(shape, '12.345')))
}

/** Pure. */
export function judgeAmount(
  { number, text }: Pick<Amounts, 'number' | 'text'>,
  thirdDecimal: AnsweredExchange,
): Finding {
  const assumed = 'a number, as mappings/data.yaml sends it'
  const checked = isSuccess(thirdDecimal.answer)
    ? 'one of three decimals is taken: what rounds it then is not shown'
    : `one of three decimals is answered ${nameOf(thirdDecimal.answer)}`
  const why = `a number: ${lineOf(number.answer)}; text: ${lineOf(text.answer)}; ${checked}`
  if (isSuccess(number.answer)) return sure(isSuccess(text.answer) ? 'number or text' : 'number', why, { assumed })
  return sure('text', why, { assumed, differs: true, advice: ['in the mapping, give total_amount `as: string`'] })
}

export async function askOrderDate(parts: Parts): Promise<Finding> {
  const shape = await readShape(parts)
  const withDate = async (date: string) =>
    (await submit(parts, shape, `the date ${date}`, { mapped: { order_date: date } })).answer
  return judgeOrderDate({
    milliseconds: await withDate('2026-01-02T03:04:05.678Z'),
    zero: await withDate('2026-01-02T03:04:05+00:00'),
    offset: await withDate('2026-01-02T03:04:05+01:00'),
  })
}

/** Pure. */
export function judgeOrderDate({
  milliseconds,
  zero,
  offset,
}: Record<'milliseconds' | 'zero' | 'offset', Response>): Finding {
  const assumed = 'UTC with Z and the digits of the client’s fraction, as mappings send it'
  const why = `with milliseconds: ${nameOf(milliseconds)}; with +00:00: ${nameOf(zero)}; with +01:00: ${nameOf(offset)}`
  const offsets = isSuccess(offset) ? 'any offset' : isSuccess(zero) ? 'UTC' : 'Z alone'
  const takes = isSuccess(milliseconds)
  const found = `${takes ? 'milliseconds' : 'whole seconds'}, ${offsets}`
  if (takes) return sure(found, why, { assumed })
  return sure(found, why, {
    assumed,
    differs: true,
    cannot:
      'a date that the client writes with a fraction of a second is sent with it, and refused: have the ERP write whole seconds',
  })
}

export async function askBodySize(parts: Parts): Promise<Finding> {
  const shape = await acceptedShape(parts)
  const base = (await submit(parts, shape, '')).body?.length ?? 0
  const ofBytes = (bytes: number) =>
    submit(parts, shape, '', { data: { padding: 'x'.repeat(Math.max(0, bytes - base - ',"padding":""'.length)) } })
  return judgeBodySize(await findLimit(ofBytes), parts.config.payloadMaxBytes)
}

const largestBytes = 16 * 1_048_576
/** One for what a body has besides, from 32 kB to the largest, doubling, and then two halvings. */
export const stepsMax = 10 + 3

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
