import { randomUUID } from 'node:crypto'
import type { DiscoverConfig } from '../../config.ts'
import { type AnsweredExchange, describeSeen, statusAndCode } from '../exchange.ts'
import { type Finding, sureFinding, unknownFinding } from '../finding.ts'
import { assertControlAccepted, hadArrivedBefore, isAcceptedRecord, observeRequestsMax } from '../observe.ts'
import { NoAnswer, type QuestionParts, type Sample } from '../question.ts'
import {
  type KeyShape,
  keyShapesToTry,
  observeTestRecord,
  requireRecordShape,
  submitTestRecord,
  testRecordSample,
  transactionIdIn,
  usualKeyHeaders,
} from '../testRecord.ts'

/**
 * Finds out if the service recognises a record that it got before: by its key, its content, or an id that the record
 * brings.
 */

/** A record sent three times under one key, then under another key, which shows a service that knows the content. */
interface Repeats {
  key: KeyShape
  first: AnsweredExchange
  again: readonly AnsweredExchange[]
  otherKey: AnsweredExchange
}

interface RepeatsSeen extends Repeats {
  /** The ways to send a key that were tried, the configured one first. */
  tried: readonly KeyShape[]
  /** True if each record brings its id, by which the service may recognise it. */
  ownId: boolean
  /** True if that id is all that the service recognises. */
  isById: boolean
}

const ofOneKeyMax = 5
const repeatsMax = 6 * ofOneKeyMax + usualKeyHeaders.length * ofOneKeyMax

/**
 * Sends the key as the daemon does. If the service does not recognise it, tries the other form and the other usual
 * headers.
 */
export const repeatedRecordSample: Sample<RepeatsSeen> = {
  name: 'a record again under its idempotency key',
  requestsMax: repeatsMax,
  recordsMax: repeatsMax,
  samples: [testRecordSample],
  async take(parts) {
    const { key, ownId } = await requireRecordShape(parts)
    const [own = key, ...others] = keyShapesToTry(key)
    const tried = [own]
    const asDaemon = await repeat(parts, own)
    // With a new id each time, the service can recognise a repetition by its key only.
    const asSent = ownId ? await repeat(parts, own, true) : asDaemon
    if (recognised(asSent) !== 'no') return { ...asDaemon, tried, ownId, isById: false }
    for (const other of others) {
      tried.push(other)
      const seen = await repeat(parts, other, ownId).catch(() => null)
      if (seen === null || recognised(seen) === 'no') continue
      const narrowed = other.headers.length === 1 ? seen : await narrow(parts, other, ownId)
      if (narrowed === null) continue
      return { ...(ownId ? await repeat(parts, narrowed.key) : narrowed), tried, ownId, isById: false }
    }
    return { ...asDaemon, tried, ownId, isById: ownId && recognised(asDaemon) !== 'no' }
  },
}

async function narrow(parts: QuestionParts, { headers, form }: KeyShape, newIds: boolean): Promise<Repeats | null> {
  for (const header of headers) {
    const seen = await repeat(parts, { headers: [header], form }, newIds)
    if (recognised(seen) !== 'no') return seen
  }
  return null
}

async function repeat(parts: QuestionParts, key: KeyShape, newIds = false): Promise<Repeats> {
  const data = parts.given.record === null ? { field2: `outboxd${parts.run}same` } : {}
  let [keyText, id] = [randomUUID(), randomUUID()]
  const send = (text: string) =>
    submitTestRecord(parts, { shape: { key }, key: text, id: newIds ? randomUUID() : id, data })
  const sendNew = async () => {
    const sent = await send(keyText)
    if (!hadArrivedBefore(parts.exchanges(), sent)) return sent
    ;[keyText, id] = [randomUUID(), randomUUID()]
    return send(keyText)
  }
  const first = await sendNew()
  if (!isAcceptedRecord(first)) throw new NoAnswer(`the first of them was refused: ${describeSeen(first.answer)}`)
  const again = [await send(keyText)]
  if (recognisedAs(first, again[0]) === 'no') return { key, first, again, otherKey: first }
  again.push(await send(keyText))
  const other = await send(randomUUID())
  const otherKey = hadArrivedBefore(parts.exchanges(), other) ? await send(randomUUID()) : other
  return { key, first, again, otherKey }
}

type Recognised = 'same id' | 'E002' | 'other' | 'no' | null

/** Null if it is unknown, or the repetitions were answered differently. */
function recognised({ first, again }: Pick<Repeats, 'first' | 'again'>): Recognised {
  const seen = new Set(again.map((each) => recognisedAs(first, each)))
  return seen.size === 1 ? ([...seen][0] ?? null) : null
}

function recognisedAs(first: AnsweredExchange, second: AnsweredExchange | undefined): Recognised {
  if (second === undefined) return null
  const { answer } = second
  if (isAcceptedRecord(second))
    return transactionIdIn(second) === null
      ? null
      : transactionIdIn(second) === transactionIdIn(first)
        ? 'same id'
        : 'no'
  if (answer.code === 'E002') return 'E002'
  return answer.status >= 400 && ![401, 403, 429].includes(answer.status) ? 'other' : null
}

const isKnownByContent = ({ first, otherKey }: Repeats) =>
  otherKey !== first && recognised({ first, again: [otherKey] }) !== 'no'

type Policy = DiscoverConfig['uncertainPolicy']

export function judgeIdempotency(seen: RepeatsSeen, policy: Policy): Finding {
  const { first, again, otherKey, tried, ownId } = seen
  const lines = again.map(({ answer }) => describeSeen(answer)).join('; ')
  const why = `first ${describeSeen(first.answer)}; again ${lines}; under another key ${describeSeen(otherKey.answer)}`
  const assumed = policy === 'resend' ? 'recognised, as UNCERTAIN_POLICY=resend says' : 'ignored'
  const byKey = recognised(seen)
  if (byKey === null) return unknownFinding(why, { assumed })
  if (byKey === 'no')
    return sureFinding('ignored', `${why}: two transactions, and the same with the key in ${tried.length} forms`, {
      assumed,
      differs: policy === 'resend',
      set: [hold('the service does not recognise a repeated request: a record that is sent twice is stored twice')],
    })
  const e002 = again.find(({ answer }) => answer.code === 'E002')?.answer.status
  const contract: Finding['contract'] = e002 === undefined ? {} : { e002: String(e002) }
  const cannot =
    byKey === 'other'
      ? 'a repetition is refused without E002: after an attempt in doubt the daemon cannot tell a record that arrived from one that is wrong'
      : null
  if (isKnownByContent(seen) && !ownId) {
    const set = [hold('two records of the same content count as one: the second would be taken for a repetition')]
    return sureFinding('by content', `${why}: known by its content, under any key`, {
      assumed,
      differs: true,
      set,
      cannot,
      contract,
    })
  }
  if (byKey === 'other')
    return sureFinding(`refused with ${statusAndCode(again[0]?.answer ?? first.answer)}`, why, {
      assumed,
      differs: true,
      set: [hold('a repetition is refused without E002')],
      cannot,
    })
  const meaning =
    byKey === 'same id'
      ? 'a repeated request gets the first answer'
      : 'a request that arrived is E002 when it is repeated, and stored once'
  const set = [{ variable: 'UNCERTAIN_POLICY', value: 'resend', why: meaning }]
  const advice = [
    'ask the operator of the service how long it remembers a key: a record that is repeated later may be stored twice',
  ]
  return sureFinding(byKey === 'same id' ? 'replay' : 'e002', why, {
    assumed,
    differs: policy === 'hold',
    set,
    advice: seen.isById ? [] : advice,
    contract,
  })
}

const hold = (why: string) => ({ variable: 'UNCERTAIN_POLICY', value: 'hold', why })

export function judgeIdempotencyHeader(seen: RepeatsSeen, assumed: string): Finding {
  const { key, tried, ownId, isById } = seen
  const byKey = isById ? 'no' : recognised(seen)
  const [header = assumed] = key.headers
  const headerFound = (why: string) =>
    sureFinding(header, why, {
      assumed,
      differs: header.toLowerCase() !== assumed.toLowerCase(),
      set: [{ variable: 'IDEMPOTENCY_HEADER', value: header, why }],
    })
  if (byKey === null) return unknownFinding('repeated requests were answered differently', { assumed })
  if (byKey === 'no') {
    const isDemanded = tried[0]?.headers[0]?.toLowerCase() !== assumed.toLowerCase()
    return isDemanded
      ? headerFound('records without it are refused, though a key in it is not recognised')
      : sureFinding('none', `no key is recognised in ${usualKeyHeaders.join(', ')}, quoted or bare`, { assumed })
  }
  return ownId || !isKnownByContent(seen)
    ? headerFound(`a record was recognised twice under the same ${header}, and not under another key`)
    : sureFinding('none', 'a record is known by its content, under any key', { assumed })
}

export const keyFormRequestsMax = 2 * (observeRequestsMax + ofOneKeyMax)

export async function askIdempotencyForm(parts: QuestionParts): Promise<Finding> {
  const assumed = parts.config.service.idempotencyKeyForm
  const seen = await parts.sample(repeatedRecordSample)
  const isKnown = !seen.isById && !['no', null].includes(recognised(seen))
  const { headers } = isKnown ? seen.key : (await requireRecordShape(parts)).key
  const look = async (form: KeyShape['form']) => {
    const key: KeyShape = { headers, form }
    const observed = await observeTestRecord(parts, { shape: { key } })
    if (!observed.taken || !isKnown) return { form, works: observed.taken, said: `${form}: ${observed.name}` }
    const works = recognised(await repeat(parts, key, seen.ownId)) !== 'no'
    return { form, works, said: `${form}: ${works ? 'recognised' : 'not recognised'}` }
  }
  const looks = [await look('quoted'), await look('bare')]
  const why = looks.map(({ said }) => said).join('; ')
  const [first, second] = looks.filter(({ works }) => works)
  if (first === undefined) return unknownFinding(why, { assumed })
  if (second !== undefined) return sureFinding('either', why, { assumed })
  const set = [{ variable: 'IDEMPOTENCY_KEY_FORM', value: first.form, why }]
  return sureFinding(first.form, why, { assumed, differs: first.form !== assumed, set })
}

export async function askOwnTransactionId(parts: QuestionParts): Promise<Finding> {
  const assumed = 'no: mappings send none'
  const advice = [
    'put `transactionId: ${submission.id}` into the mapping’s body; then UNCERTAIN_POLICY=probe asks for a record in doubt by that id',
  ]
  if ((await requireRecordShape(parts)).ownId) {
    const { taken, name } = await observeTestRecord(parts, { shape: { ownId: false } })
    const why = `a record without transactionId is answered ${name}, one that brings it is accepted`
    if (!taken) return sureFinding('required', why, { assumed, differs: true, advice })
  }
  const ids = [randomUUID(), randomUUID()] as const
  const bring = (id: string, key: string = randomUUID()) => submitTestRecord(parts, { shape: { ownId: true }, id, key })
  const sent = [await bring(ids[0]), await bring(ids[1])] as const
  if (isAcceptedRecord(sent[0]) !== isAcceptedRecord(sent[1]))
    throw new NoAnswer(
      `two such records were answered differently: ${sent.map(({ answer }) => describeSeen(answer)).join('; ')}`,
    )
  if (!isAcceptedRecord(sent[0])) {
    await assertControlAccepted(() => submitTestRecord(parts))
    return sureFinding('refused', describeSeen(sent[0].answer), { assumed })
  }
  const kept = sent.filter((each, i) => transactionIdIn(each) === ids[i])
  if (kept.length === 1) throw new NoAnswer('of two records that brought their ids one kept it')
  if (kept.length === 0)
    return sureFinding(
      'ignored',
      `sent ${ids[0]}, answered ${transactionIdIn(sent[0]) ?? 'without an id'}; the same again`,
      {
        assumed,
      },
    )
  const again = await bring(ids[0])
  const contract: Finding['contract'] = again.answer.code === 'E002' ? { e002: String(again.answer.status) } : {}
  const why = `two records kept the ids that they brought; another with one of these was answered ${statusAndCode(again.answer)}`
  const cannot = isAcceptedRecord(again)
    ? 'two records may have the same id: under UNCERTAIN_POLICY=probe, the daemon may take one for the other'
    : null
  return sureFinding('taken', why, { assumed, differs: true, advice, contract, cannot })
}
