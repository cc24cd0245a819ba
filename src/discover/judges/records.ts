import { serviceResources } from '../../resources.ts'
import { textOf } from '../../service/readJson.ts'
import {
  type AnsweredExchange,
  describeSeen,
  fieldOf,
  isSuccess,
  type Response,
  statusAndCode,
  transactionStatusIn,
} from '../exchange.ts'
import { certaintyOf, createFinding, type Finding, likelyFinding, sureFinding, unknownFinding } from '../finding.ts'
import {
  assertControlAccepted,
  contradictionFinding,
  isAcceptedRecord,
  type Observed,
  observeRequestsMax,
  pollUntilEnded,
} from '../observe.ts'
import { CannotAsk, type QuestionParts, type Sample } from '../question.ts'
import {
  customerOf,
  explainRefusedRecord,
  observeTestRecord,
  otherAmountType,
  type RecordChange,
  type RecordShape,
  requireAcceptedRecord,
  requireRecordShape,
  submitTestRecord,
  testRecordSample,
  transactionIdIn,
} from '../testRecord.ts'

/** Two transactions followed to their ends, or for a minute (docs/reference/interface.md, 3.1). */
interface PolledRecords {
  taken: readonly AnsweredExchange[]
  polls: readonly (readonly AnsweredExchange[])[]
}

/** Short at first, because the first states may be short. */
const waitsMs = [0, 150, 350, 700, 2_000, 4_000, 8_000, 15_000, 30_000]

export const recordPollsSample: Sample<PolledRecords> = {
  name: 'the lives of two transactions',
  requestsMax: 1 + 2 * waitsMs.length,
  recordsMax: 1,
  samples: [testRecordSample],
  async take(parts) {
    const taken = [(await requireAcceptedRecord(parts)).exchange, await submitTestRecord(parts)]
    const ids = taken.flatMap((each) => transactionIdIn(each) ?? [])
    const paths = ids.map((id) => `${serviceResources.data.path}/${encodeURIComponent(id)}`)
    return { taken, polls: await pollUntilEnded(parts, paths, waitsMs) }
  },
}

const assumedSubmission = '200 with a transactionId'

export async function askSubmission(parts: QuestionParts): Promise<Finding> {
  const { shape, tried } = await parts.sample(testRecordSample)
  const last = tried.at(-1)?.exchange
  if (last === undefined) return unknownFinding('no record was sent')
  if (shape === null) {
    const why = explainRefusedRecord(last.answer)
    const cannot = `a record is answered ${statusAndCode(last.answer)}`
    return unknownFinding(why, { assumed: assumedSubmission, cannot, advice: [why] })
  }
  const second =
    transactionIdIn(last) === null ? await submitTestRecord(parts) : (await parts.sample(recordPollsSample)).taken[1]
  return judgeAcceptedAnswers([last.answer, ...(second === undefined ? [] : [second.answer])], {
    assumed: assumedSubmission,
    idField: serviceResources.data.idField,
    hasId: transactionIdIn(last) !== null,
    status: 200,
    pair: 'submit_ok',
  })
}

interface AcceptedAs {
  assumed: string
  idField: string
  hasId: boolean
  status: number
  pair: 'submit_ok' | 'order_ok'
}

export function judgeAcceptedAnswers(
  answers: readonly Response[],
  { assumed, idField, hasId, status, pair }: AcceptedAs,
): Finding {
  const [seen] = answers
  if (seen === undefined) return unknownFinding('nothing was accepted', { assumed })
  const differing = contradictionFinding(answers, assumed)
  if (differing !== null) return differing
  const why = answers.map(describeSeen).join('; ')
  const certainty = certaintyOf(answers.length)
  if (hasId)
    return createFinding(certainty, String(seen.status), why, {
      ...{ assumed, differs: seen.status !== status },
      contract: { [pair]: String(seen.status) },
    })
  const cannot = `without an ${idField} that can be read, the service cannot be asked for it: each one becomes uncertain`
  return createFinding(certainty, `${seen.status} without ${idField}`, why, { assumed, differs: true, cannot })
}

/** The statuses that the daemon reads as pending or as an end (docs/why/contract.md). */
const readStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])
const isEnd = (status: string) => /^(completed|failed)$/i.test(status.trim())

export function judgeStatusValues(lives: readonly (readonly AnsweredExchange[])[]): Finding {
  const assumed = 'accepted or pending, then completed or failed'
  const said = lives.map((polls) => polls.map(transactionStatusIn).filter((status) => status !== null))
  // The transaction that showed most statuses comes first, because it has their order.
  const statuses = [...new Set(said.toSorted((a, b) => new Set(b).size - new Set(a).size).flat())]
  const last = lives.flat().at(-1)
  if (last === undefined) return unknownFinding('no status was asked for', { assumed })
  if (statuses.length === 0)
    return unknownFinding(`no status can be read: ${describeSeen(last.answer)}`, {
      assumed,
      differs: true,
      cannot: 'an answer without a status is a breach of contract: the daemon asks again and again',
    })
  const foreign = statuses.filter((status) => !readStatuses.has(status.trim().toLowerCase()))
  const ended = said.filter((each) => each.slice(-1).some((status) => isEnd(status) || foreign.includes(status)))
  // If a transaction begins with an end, its first statuses may have passed unseen.
  const isWhole = (each: readonly string[]) => new Set(each).size === statuses.length && !isEnd(each[0] ?? '')
  const agree = said.length > 1 && said.every(isWhole) && ended.length === said.length
  const why = said.map((each) => each.join(', ')).join('; ') + (ended.length === 0 ? '; the end was not seen' : '')
  const cannot = `${foreign.join(', ')} is not a status that the daemon knows: it counts a breach of contract and asks again, so a record with such a last status never ends`
  return createFinding(agree ? 'sure' : 'likely', statuses.join(', '), why, {
    assumed,
    ...(foreign.length === 0 ? {} : { differs: true, cannot }),
  })
}

/** A record with its fields in one place, and the same with an amount that is wrong on purpose. */
interface PlaceSeen {
  right: boolean
  wrong: boolean | null
}

/** The place where the service reads the fields of docs/reference/interface.md, 2.5. */
interface FieldPlaces {
  data: PlaceSeen
  beside: PlaceSeen | null
  without: boolean
  why: string
}

/** A field that the service does not read may hold anything, so a wrong amount shows the place where it is read. */
export const fieldPlacesSample: Sample<FieldPlaces> = {
  name: 'records with a wrong amount, here and there',
  requestsMax: 6 * observeRequestsMax,
  recordsMax: 14,
  samples: [testRecordSample],
  async take(parts) {
    const shape = await requireRecordShape(parts)
    const seen: string[] = []
    const look = async (what: string, change: RecordChange) => {
      const { taken, name } = await observeTestRecord(parts, change)
      seen.push(`${what}: ${name}`)
      return taken
    }
    const at = async (place: 'data' | 'beside'): Promise<PlaceSeen> => {
      const amount = otherAmountType(shape.amount)
      const right =
        shape.place === place ||
        (await look(`in ${place}`, { shape: { place } })) ||
        (await look(`in ${place}, the amount as ${amount}`, { shape: { place, amount } }))
      const mapped = { total_amount: 'noamount' }
      return { right, wrong: right ? await look(`a wrong amount in ${place}`, { shape: { place }, mapped }) : null }
    }
    const data = await at('data')
    const beside = isRead(data) ? null : await at('beside')
    const without = shape.place === 'nowhere' || (await look('without them', { shape: { place: 'nowhere' } }))
    return { data, beside, without, why: seen.join('; ') }
  },
}

const isRead = (place: PlaceSeen | null) => place?.right === true && place.wrong === false
const placeRead = ({ data, beside }: FieldPlaces) => (isRead(data) ? 'data' : isRead(beside) ? 'beside' : null)

export function judgeMappedFields(mapped: FieldPlaces): Finding {
  const assumed = 'in data, as mappings/data.yaml sends them'
  const { data, without, why } = mapped
  const place = placeRead(mapped)
  const need = without ? 'optional' : 'required'
  const instead = (what: string, advice: string) => sureFinding(what, why, { assumed, differs: true, advice: [advice] })
  if (place === 'data') return sureFinding(`in data, ${need}`, why, { assumed })
  if (place === 'beside')
    return instead(
      `beside data, ${need}`,
      'in the mapping’s `body`, put customer_id, order_date and total_amount next to data: the service does not read them in data',
    )
  if (!without) return unknownFinding(why, { assumed })
  if (!data.right)
    return instead(
      'refused',
      'take customer_id, order_date and total_amount out of the mapping’s `body`; ask the operator of the service where they belong',
    )
  return instead(
    'ignored',
    'the service does not read customer_id, order_date and total_amount where mappings/data.yaml puts them: ask its operator where they belong',
  )
}

interface Amounts {
  place: 'data' | 'beside' | null
  number: boolean
  text: boolean
  why: string
}

export const amountTypesSample: Sample<Amounts> = {
  name: 'an amount as a number and as text',
  requestsMax: 2 * observeRequestsMax,
  recordsMax: 5,
  samples: [fieldPlacesSample],
  async take(parts) {
    const place = placeRead(await parts.sample(fieldPlacesSample))
    if (place === null) return { place, number: false, text: false, why: 'the service reads no amount' }
    const as = (amount: RecordShape['amount']) => observeTestRecord(parts, { shape: { place, amount } })
    const [number, text] = [await as('number'), await as('text')]
    return { place, number: number.taken, text: text.taken, why: `a number: ${number.name}; text: ${text.name}` }
  },
}

export function judgeAmountType({ place, number, text, why }: Amounts): Finding {
  const assumed = 'a number, as mappings/data.yaml sends it'
  if (place === null) return likelyFinding('not read', why, { assumed })
  if (number) return sureFinding(text ? 'number or text' : 'number', why, { assumed })
  if (!text) return unknownFinding(why, { assumed })
  return sureFinding('text', why, {
    assumed,
    differs: true,
    advice: ['in the mapping, give total_amount `as: string`'],
  })
}

/** A service that accepts this does not read dates. */
const noDate = '2026-13-42T03:04:05Z'

export const orderDateRequestsMax = 4 * observeRequestsMax

export async function askOrderDate(parts: QuestionParts): Promise<Finding> {
  const { place, number } = await parts.sample(amountTypesSample)
  const assumed = 'UTC with Z and the digits of the client’s fraction, as mappings send it'
  if (place === null)
    return likelyFinding('not read', 'the service does not read the amount, and the date is next to it', { assumed })
  const withDate = (order_date: string) =>
    observeTestRecord(parts, { shape: { place, amount: number ? 'number' : 'text' }, mapped: { order_date } })
  if ((await withDate(noDate)).taken) return likelyFinding('not read', `the date ${noDate} is accepted`, { assumed })
  const milliseconds = await withDate('2026-01-02T03:04:05.678Z')
  const zero = await withDate('2026-01-02T03:04:05+00:00')
  const offset = await withDate('2026-01-02T03:04:05+01:00')
  const why = `with milliseconds: ${milliseconds.name}; with +00:00: ${zero.name}; with +01:00: ${offset.name}`
  const offsets = offset.taken ? 'any offset' : zero.taken ? 'UTC' : 'Z alone'
  if (milliseconds.taken) return sureFinding(`milliseconds, ${offsets}`, why, { assumed })
  const cannot = 'a date with a fraction of a second is sent with it, and refused: have the ERP write whole seconds'
  return sureFinding(`whole seconds, ${offsets}`, why, { assumed, differs: true, cannot })
}

export const customerLengthRequestsMax = 5 * observeRequestsMax

/** Tests the limit of 10 in characters, bytes and UTF-16 units, and sends ids that fit in every unit for comparison. */
export async function askCustomerLength(parts: QuestionParts): Promise<Finding> {
  const customer = customerOf(parts.given)
  // The first characters of a known customer, in case the service checks them.
  const prefix = customer.slice(0, 2)
  const withId = (customerId: string) => observeTestRecord(parts, { customerId })
  const withLetters = (letter: string, length: number) => withId(prefix + letter.repeat(length - prefix.length))
  const ten = await withId(customer.padEnd(10, '0').slice(0, 10))
  const eleven = await withId(customer.padEnd(11, '0').slice(0, 11))
  const bytes = await withLetters('é', 10)
  if (!isLike(bytes, ten))
    return judgeCustomerLength({
      ten,
      eleven,
      bytes,
      fewBytes: await withLetters('é', 5),
      halves: null,
      fewHalves: null,
    })
  const halves = await withLetters('𝒳', 10)
  const fewHalves = isLike(halves, ten) ? null : await withLetters('𝒳', 5)
  return judgeCustomerLength({ ten, eleven, bytes, fewBytes: null, halves, fewHalves })
}

interface LengthsSeen {
  ten: Observed
  eleven: Observed
  /** With letters of two bytes: ten characters, and five if ten are refused. */
  bytes: Observed
  fewBytes: Observed | null
  /** The same with characters of two UTF-16 units. */
  halves: Observed | null
  fewHalves: Observed | null
}

/** True if an id got the same answer as the one of ten characters, which fits. */
function isLike(seen: Observed, ten: Observed): boolean {
  return seen.taken === ten.taken && (seen.taken || (seen.name === ten.name && wordsOf(seen) === wordsOf(ten)))
}

/** The words of a refusal without the customer's id and without volatile parts. */
function wordsOf({ exchange }: Observed): string {
  const id = textOf(fieldOf(JSON.parse(exchange.body ?? 'null'), 'customerId')) ?? ''
  return exchange.answer.text.replaceAll(id, '#').replaceAll(/[0-9a-f-]{12,}|\d{4,}|[\d:.]+Z/gi, '#')
}

export function judgeCustomerLength({ ten, eleven, bytes, fewBytes, halves, fewHalves }: LengthsSeen): Finding {
  const assumed = 'characters, as `maxLength` of a mapping counts'
  const named = {
    '10': ten,
    '11': eleven,
    '10 with é': bytes,
    '5 with é': fewBytes,
    '10 with 𝒳': halves,
    '5 with 𝒳': fewHalves,
  }
  const why = Object.entries(named)
    .flatMap(([name, seen]) => (seen === null ? [] : [`${name}: ${seen.name}`]))
    .join(', ')
  if (isLike(eleven, ten)) {
    if (!ten.taken) return unknownFinding(`${why}, perhaps because of the customer and not of the length`, { assumed })
    const advice = ['the service accepts longer ids than the interface says: keep to 10 anyway']
    return sureFinding('not limited', why, { assumed, differs: true, advice })
  }
  const counted = (what: string, letters: string) =>
    sureFinding(what, why, {
      assumed,
      differs: true,
      cannot: `a mapping counts characters: the service may refuse a customerId with ${letters} though it maps`,
    })
  if (fewBytes !== null) {
    if (isLike(fewBytes, ten)) return counted('bytes', 'letters beyond ASCII')
    const advice = ['the service accepts only plain letters and digits in a customerId: say so in the mapping']
    return unknownFinding(`${why}: letters beyond ASCII are refused at any length`, { assumed, advice })
  }
  if (halves === null) return unknownFinding(why, { assumed })
  if (isLike(halves, ten)) return sureFinding('characters', why, { assumed })
  return fewHalves !== null && isLike(fewHalves, ten)
    ? counted('UTF-16 units', 'emoji or the like')
    : unknownFinding(`${why}: characters beyond 16 bits are refused at any length`, { assumed })
}

const longLength = 1_000

/** The long text repeats the control's characters, so that a rule on characters is not taken for one on the length. */
export async function askField2(parts: QuestionParts): Promise<Finding> {
  const assumed = 'any text'
  const own = textOf(fieldOf(fieldOf(parts.given.record, 'data'), 'field2')) || `outboxd${parts.run}0000`
  const withText = (field2: string) => observeTestRecord(parts, { data: { field2 } })
  const empty = await withText('')
  const long = await withText(own.repeat(Math.ceil(longLength / own.length)).slice(0, longLength))
  const odd = await withText(specialCharacters(own.length))
  const limits = [
    empty.taken ? [] : 'not empty',
    long.taken ? [] : `below ${longLength.toLocaleString('en')} characters`,
    odd.taken ? [] : 'not every character',
  ].flat()
  const [said, saidLong, saidOdd] = [empty, long, odd].map(({ exchange }) => describeSeen(exchange.answer))
  const why = `empty: ${said}; ${longLength} characters: ${saidLong}; ${JSON.stringify(specialCharacters(5))}: ${saidOdd}`
  if (limits.length === 0) return sureFinding('any text', why, { assumed })
  const advice = [
    'put it into the mapping (required, maxLength): such a record is then rejected before it takes a slot',
  ]
  return sureFinding(limits.join(', '), why, { assumed, differs: true, advice })
}

/** A text as long as the control's, with characters that a rule may refuse. */
export const specialCharacters = (length: number): string => 'Ä ;"é'.repeat(Math.ceil(length / 5)).slice(0, length)

const largestBytes = 16 * 1_048_576
/** One without padding, ten that double from 32 kB, two between, and a control. */
export const bodySizeRequestsMax = 1 + 10 + 2 + 1

/** Doubles the body until it is refused, then halves the difference. */
export async function askBodySize(parts: QuestionParts): Promise<Finding> {
  const assumed = `payloads of up to ${parts.config.payloadMaxBytes} bytes (PAYLOAD_MAX_BYTES)`
  const padded = (padding: string) => submitTestRecord(parts, { data: { padding } })
  const base = await padded('')
  if (!isAcceptedRecord(base))
    throw new CannotAsk(`a record with one more field is refused: ${describeSeen(base.answer)}`)
  const baseBytes = base.body?.length ?? 0
  const look = async (bytes: number) => (await padded('x'.repeat(Math.max(0, bytes - baseBytes)))).answer
  let taken = 0
  let refused: { bytes: number; answer: Response } | null = null
  for (let bytes = 32_768; bytes <= largestBytes && refused === null; bytes *= 2) {
    const answer = await look(bytes)
    if (isSuccess(answer)) taken = bytes
    else refused = { bytes, answer }
  }
  if (refused === null) return sureFinding(`more than ${taken}`, `${taken} bytes were accepted`, { assumed })
  for (let i = 0; i < 2; i++) {
    const bytes = Math.round((taken + refused.bytes) / 2)
    const answer = await look(bytes)
    if (isSuccess(answer)) taken = bytes
    else refused = { bytes, answer }
  }
  await assertControlAccepted(() => submitTestRecord(parts))
  const why = `${taken} bytes were accepted, ${refused.bytes} were answered ${statusAndCode(refused.answer)}`
  if (taken === 0) return unknownFinding(why, { assumed })
  const differs = taken < parts.config.payloadMaxBytes
  const set = {
    variable: 'PAYLOAD_MAX_BYTES',
    value: String(taken),
    why: `${why}: a larger body is rejected before it is sent`,
  }
  return likelyFinding(String(taken), why, { assumed, differs, set: differs ? [set] : [] })
}
