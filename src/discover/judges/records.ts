import { type Resource, serviceResources } from '../../resources.ts'
import { textOrDigitsOf } from '../../service/readJson.ts'
import {
  type AnsweredExchange,
  describeAnswer,
  fieldOf,
  isSuccess,
  type Response,
  statusAndCodeText,
  submittedIdIn,
  transactionStatusIn,
} from '../exchange.ts'
import {
  assertControlRecordAccepted,
  describeObservations,
  followTwoTransactions,
  isAcceptedRecord,
} from '../observe.ts'
import {
  CannotAsk,
  type Finding,
  likelyFinding,
  type QuestionContext,
  type Sample,
  sureFinding,
  unknownFinding,
} from '../question.ts'
import {
  explainRefusedRecord,
  findAcceptedRecordShape,
  observeChangedTestRecord,
  otherAmountType,
  type RecordChange,
  type RecordShape,
  type ShapeSearchResult,
  submitTestRecord,
  testRecordSample,
} from '../testRecord.ts'

export const askAnswerToSubmission = (parts: QuestionContext): Promise<Finding> =>
  askHowRecordIsAccepted(parts, testRecordSample, submitTestRecord, {
    resource: 'data',
    status: 200,
    pair: 'submit_ok',
  })

export async function askHowRecordIsAccepted(
  parts: QuestionContext,
  control: Sample<ShapeSearchResult<unknown>>,
  submit: (parts: QuestionContext) => Promise<AnsweredExchange>,
  expected: { resource: Resource; status: number; pair: 'submit_ok' | 'order_ok' },
): Promise<Finding> {
  const { shape, tried } = await parts.sample(control)
  const first = tried.at(-1)
  if (shape === null || first === undefined) {
    const why = explainRefusedRecord(first?.answer)
    const seen = first === undefined ? 'nothing' : statusAndCodeText(first.answer)
    return unknownFinding(why, { cannot: `a record in this form is answered ${seen}`, advice: [why] })
  }
  const second = await submit(parts)
  const why = `${describeAnswer(first.answer)}; ${describeAnswer(second.answer)}`
  const { status } = first.answer
  if (status !== second.answer.status) return unknownFinding(`equal requests were answered differently: ${why}`)
  const contract = { [expected.pair]: String(status) }
  if (submittedIdIn(expected.resource, first) !== null)
    return sureFinding(String(status), why, { differs: status !== expected.status, contract })
  const { idField } = serviceResources[expected.resource]
  const cannot = `without a readable ${idField}, the daemon cannot ask for a record's status: each record becomes uncertain`
  return sureFinding(`${status} without ${idField}`, why, { differs: true, cannot })
}

export const askStatusValues = async (parts: QuestionContext): Promise<Finding> =>
  judgeStatusValues(await followTwoTransactions(parts, 'data', () => submitTestRecord(parts)))

/** The statuses that the daemon reads as pending or as an end (docs/why/contract.md). */
const readStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])
const isEnd = (status: string) => /^(completed|failed)$/i.test(status.trim())

export function judgeStatusValues(pollsPerTransaction: readonly (readonly AnsweredExchange[])[]): Finding {
  const said = pollsPerTransaction.map((polls) => polls.map(transactionStatusIn).filter((status) => status !== null))
  // Takes the order of the statuses from the transaction that showed most of them.
  const statuses = [...new Set(said.toSorted((a, b) => new Set(b).size - new Set(a).size).flat())]
  const last = pollsPerTransaction.flat().at(-1)
  if (last === undefined) return unknownFinding('no status was asked for')
  if (statuses.length === 0)
    return unknownFinding(`no status can be read: ${describeAnswer(last.answer)}`, {
      differs: true,
      cannot: 'an answer without a status is a breach of contract: the daemon asks again and again',
    })
  const foreign = statuses.filter((status) => !readStatuses.has(status.trim().toLowerCase()))
  const ended = said.filter((each) => each.slice(-1).some((status) => isEnd(status) || foreign.includes(status)))
  // If the first poll already shows an end, earlier statuses may have passed unseen.
  const isWhole = (each: readonly string[]) => new Set(each).size === statuses.length && !isEnd(each[0] ?? '')
  const agree = said.length > 1 && said.every(isWhole) && ended.length === said.length
  const why = said.map((each) => each.join(', ')).join('; ') + (ended.length === 0 ? '; the end was not seen' : '')
  const cannot = `${foreign.join(', ')} is not a status that the daemon knows: it counts a breach of contract and asks again, so a record with such a last status never ends`
  const more = foreign.length === 0 ? {} : { differs: true, cannot }
  return (agree ? sureFinding : likelyFinding)(statuses.join(', '), why, more)
}

/** The place where the service reads the fields of docs/reference/interface.md, 2.5. */
interface FieldPlaces {
  isTakenInData: boolean
  read: 'data' | 'beside' | null
  without: boolean
  why: string
}

/** Sends wrong amounts, because the service refuses them only where it reads the amount. */
const fieldPlacesSample: Sample<FieldPlaces> = {
  name: 'records with a wrong amount in different places',
  async take(parts) {
    const shape = await findAcceptedRecordShape(parts)
    const seen: string[] = []
    const isTaken = async (what: string, change: RecordChange) => {
      const { isAccepted, statusAndCode } = await observeChangedTestRecord(parts, change)
      seen.push(`${what}: ${statusAndCode}`)
      return isAccepted
    }
    const amount = otherAmountType(shape.amount)
    const isTakenIn = async (place: 'data' | 'beside') =>
      shape.place === place ||
      (await isTaken(`in ${place}`, { shape: { place } })) ||
      (await isTaken(`in ${place}, the amount as ${amount}`, { shape: { place, amount } }))
    const isReadIn = async (place: 'data' | 'beside') =>
      !(await isTaken(`a wrong amount in ${place}`, { shape: { place }, mapped: { total_amount: 'noamount' } }))
    const isTakenInData = await isTakenIn('data')
    let read: FieldPlaces['read'] = null
    if (isTakenInData && (await isReadIn('data'))) read = 'data'
    else if ((await isTakenIn('beside')) && (await isReadIn('beside'))) read = 'beside'
    const without = shape.place === 'nowhere' || (await isTaken('without them', { shape: { place: 'nowhere' } }))
    return { isTakenInData, read, without, why: seen.join('; ') }
  },
}

export async function askPlaceOfMappedFields(parts: QuestionContext): Promise<Finding> {
  const { isTakenInData, read, without, why } = await parts.sample(fieldPlacesSample)
  const need = without ? 'optional' : 'required'
  if (read === 'data') return sureFinding(`in data, ${need}`, why)
  if (read === null && !without) return unknownFinding(why)
  const differs = (what: string, advice: string) => sureFinding(what, why, { differs: true, advice: [advice] })
  if (read === 'beside')
    return differs(
      `beside data, ${need}`,
      'in the mapping’s `body`, put customer_id, order_date and total_amount next to data: the service does not read them in data',
    )
  if (isTakenInData)
    return differs(
      'ignored',
      'the service does not read customer_id, order_date and total_amount where mappings/data.yaml puts them: ask its operator where they belong',
    )
  return differs(
    'refused',
    'take customer_id, order_date and total_amount out of data in the mapping’s `body`, and the fields that `body` then does not use (order_date, total_amount) out of `fields`; ask the operator of the service where they belong',
  )
}

const notRead = 'not read'

const amountTypesSample: Sample<{ place: FieldPlaces['read']; number: boolean; text: boolean; why: string }> = {
  name: 'an amount as a number and as text',
  async take(parts) {
    const { read: place } = await parts.sample(fieldPlacesSample)
    if (place === null) return { place, number: false, text: false, why: 'the service reads no amount' }
    const as = (amount: RecordShape['amount']) => observeChangedTestRecord(parts, { shape: { place, amount } })
    const [number, text] = [await as('number'), await as('text')]
    return { place, number: number.isAccepted, text: text.isAccepted, why: describeObservations({ number, text }) }
  },
}

export async function askAmountType(parts: QuestionContext): Promise<Finding> {
  const { place, number, text, why } = await parts.sample(amountTypesSample)
  if (place === null) return likelyFinding(notRead, why)
  if (number) return sureFinding(text ? 'number or text' : 'number', why)
  if (!text) return unknownFinding(why)
  return sureFinding('text', why, { differs: true, advice: ['in the mapping, give total_amount `as: string`'] })
}

/** No such date exists. A service that accepts it does not read dates. */
const noDate = '2026-13-42T03:04:05Z'

export async function askOrderDateFormat(parts: QuestionContext): Promise<Finding> {
  const { place: ofAmount, number } = await parts.sample(amountTypesSample)
  const accepted = await findAcceptedRecordShape(parts)
  // A service that reads no amount may read the date where it takes the test record's.
  const place = ofAmount ?? accepted.place
  if (place === 'nowhere') return likelyFinding(notRead, 'the service takes a record only without it')
  const readAs = number ? 'number' : 'text'
  const amount = ofAmount === null ? accepted.amount : readAs
  const withDate = (order_date: string | undefined) =>
    observeChangedTestRecord(parts, { shape: { place, amount }, mapped: { order_date } })
  if ((await withDate(noDate)).isAccepted) {
    const why = `the date ${noDate} is accepted`
    if (!(await withDate(undefined)).isAccepted)
      return likelyFinding('required, any text', `${why}, and a record without order_date is not`)
    if ((await withDate('nodate')).isAccepted)
      return likelyFinding(notRead, `${why}, and so is a record without order_date`)
  }
  const milliseconds = await withDate('2026-01-02T03:04:05.678Z')
  const zero = await withDate('2026-01-02T03:04:05+00:00')
  const offset = await withDate('2026-01-02T03:04:05+01:00')
  const why = describeObservations({ 'with milliseconds': milliseconds, 'with +00:00': zero, 'with +01:00': offset })
  const onlyUtc = zero.isAccepted ? 'UTC' : 'only Z'
  const offsets = offset.isAccepted ? 'any offset' : onlyUtc
  if (milliseconds.isAccepted) return sureFinding(`milliseconds, ${offsets}`, why)
  const cannot =
    'the daemon sends fractions of a second, and the service refuses them: have the ERP write whole seconds'
  return sureFinding(`whole seconds, ${offsets}`, why, { differs: true, cannot })
}

const longLength = 1_000

/** The long text repeats the control's characters, so that the service can refuse it only for its length. */
export async function askField2Limits(parts: QuestionContext): Promise<Finding> {
  const own = textOrDigitsOf(fieldOf(fieldOf(parts.given.record, 'data'), 'field2')) || `outboxd${parts.run}0000`
  const withText = (field2: string) => observeChangedTestRecord(parts, { data: { field2 } })
  const empty = await withText('')
  const long = await withText(repeatToLength(own, longLength))
  const odd = await withText(makeTextOfSpecialCharacters(own.length))
  const limits = [
    empty.isAccepted ? [] : 'not empty',
    long.isAccepted ? [] : `below ${longLength.toLocaleString('en')} characters`,
    odd.isAccepted ? [] : 'not every character',
  ].flat()
  const [said, saidLong, saidOdd] = [empty, long, odd].map(({ exchange }) => describeAnswer(exchange.answer))
  const why = `empty: ${said}; ${longLength} characters: ${saidLong}; ${JSON.stringify(makeTextOfSpecialCharacters(5))}: ${saidOdd}`
  if (limits.length === 0) return sureFinding('any text', why)
  const lengthMax = long.isAccepted ? null : await findLengthSaid(parts, own, long.exchange.answer.text)
  const options = [
    ...(empty.isAccepted ? [] : ['required: true']),
    ...(long.isAccepted ? [] : [lengthMax === null ? 'maxLength' : `maxLength: ${lengthMax}`]),
  ]
  const advice =
    options.length === 0
      ? ['ask the operator of the service which characters field2 may have']
      : [
          `in the mapping, give field2 ${options.join(' and ')}: a wrong record is then rejected before it costs a request`,
        ]
  return sureFinding(limits.join(', '), why, { differs: true, advice })
}

/** Returns the length that a refusal names, if the service takes that length and refuses one more. */
async function findLengthSaid(parts: QuestionContext, own: string, refusal: string): Promise<number | null> {
  const said = [...refusal.matchAll(/(?<![\d.])\d{1,3}(?![\d.])/g)].map(([digits]) => Number(digits))
  for (const length of new Set(said)) {
    if (length < own.length) continue
    const ofLength = (count: number) => ({ data: { field2: repeatToLength(own, count) } })
    const [fits, tooLong] = [
      await submitTestRecord(parts, ofLength(length)),
      await submitTestRecord(parts, ofLength(length + 1)),
    ]
    if (isAcceptedRecord(fits) && !isAcceptedRecord(tooLong)) return length
  }
  return null
}

/** Returns characters that a service may refuse. */
export const makeTextOfSpecialCharacters = (length: number): string => repeatToLength('Ä ;"é', length)

const repeatToLength = (text: string, length: number) => text.repeat(Math.ceil(length / text.length)).slice(0, length)

const largestBytes = 16 * 1_048_576
const halvings = 2

export async function askLargestBody(parts: QuestionContext): Promise<Finding> {
  const padded = (padding: string) => submitTestRecord(parts, { data: { padding } })
  const base = await padded('')
  if (!isAcceptedRecord(base))
    throw new CannotAsk(`a record with one more field is refused: ${describeAnswer(base.answer)}`)
  const baseBytes = base.body?.length ?? 0
  let taken = 0
  let refused: { bytes: number; answer: Response } | null = null
  for (let bytes = 32_768, looks = 0; bytes <= largestBytes && looks <= halvings; ) {
    const { answer } = await padded('x'.repeat(Math.max(0, bytes - baseBytes)))
    if (isSuccess(answer)) taken = bytes
    else refused = { bytes, answer }
    looks += refused === null ? 0 : 1
    bytes = refused === null ? 2 * bytes : Math.round((taken + refused.bytes) / 2)
  }
  if (refused === null) return sureFinding(`more than ${taken}`, `${taken} bytes were accepted`)
  await assertControlRecordAccepted(() => submitTestRecord(parts))
  const why = `${taken} bytes were accepted, ${refused.bytes} were answered ${statusAndCodeText(refused.answer)}`
  if (taken === 0) return unknownFinding(why)
  if (taken >= parts.config.payloadMaxBytes) return likelyFinding(String(taken), why)
  const set = {
    variable: 'PAYLOAD_MAX_BYTES',
    value: String(taken),
    why: `${why}: a larger body is rejected before it is sent`,
  }
  return likelyFinding(String(taken), why, { differs: true, set: [set] })
}
