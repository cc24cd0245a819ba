import { randomUUID } from 'node:crypto'
import type { Contract } from '../../config.ts'
import { type AnsweredExchange, describeAnswer, statusAndCodeText } from '../exchange.ts'
import {
  assertControlRecordAccepted,
  isAcceptedRecord,
  sendAgainIfEarlierAttemptArrived,
  sendTwice,
} from '../observe.ts'
import {
  type Finding,
  NoUsableAnswer,
  type QuestionContext,
  type Sample,
  sureFinding,
  unknownFinding,
} from '../question.ts'
import {
  findAcceptedRecordShape,
  type IdempotencyKeyShape,
  observeChangedTestRecord,
  submitTestRecord,
  transactionIdIn,
  usualIdempotencyHeaders,
} from '../testRecord.ts'

/**
 * Finds out if the service recognises a record that it got before: by its idempotency key, its content, or an id that
 * the record brings.
 */

/** A record sent again under the same key, then under another key, in case the service compares the content. */
interface Repeats {
  first: AnsweredExchange
  again: readonly AnsweredExchange[]
  /** Null if the service did not recognise the first key. */
  otherKey: AnsweredExchange | null
}

interface KeyTry {
  header: string
  form: IdempotencyKeyShape['form']
  /** Null if records with this key are refused. */
  repeats: Repeats | null
  said: string
}

interface KeysSeen {
  tried: readonly KeyTry[]
  /** False if a key that was not recognised at once was recognised later, or the other way round. */
  isStable: boolean
  /** The tries with the first header whose key is recognised, or else with the first that is accepted. */
  ofHeader: readonly KeyTry[]
  /** With the same key and id. */
  asDaemon: Repeats
  /** True if each record brings its id, by which the service may recognise the record. */
  ownId: boolean
}

/** A service may know a key only a moment after the record. */
const laterMs = 2_000

/**
 * Tries the configured header, quoted and bare, then the other usual headers until the service recognises a key. Then
 * tries the header that was found, or all headers, in the other order, and repeats these records only later.
 */
const keysSample: Sample<KeysSeen> = {
  name: 'a record again under its idempotency key',
  async take(parts) {
    const { ownId } = await findAcceptedRecordShape(parts)
    const { idempotencyHeader } = parts.config.service
    const others = usualIdempotencyHeaders.filter((name) => name.toLowerCase() !== idempotencyHeader.toLowerCase())
    const tried: KeyTry[] = []
    for (const header of [idempotencyHeader, ...others]) {
      for (const form of ['quoted', 'bare'] as const) tried.push(await tryKey(parts, header, form, ownId))
      if (tried.some(isRecognised)) break
    }
    const found = tried.find(isRecognised)?.header
    const again = tried.filter(({ header }) => found === undefined || header === found)
    const later = await tryKeysLater(parts, again.toReversed(), ownId)
    const first = tried.find(isRecognised) ?? tried.find(({ repeats }) => repeats !== null)
    if (first === undefined || first.repeats === null)
      throw new NoUsableAnswer('records with an idempotency key in only one header are refused')
    const key: IdempotencyKeyShape = { headers: [first.header], form: first.form }
    return {
      tried,
      isStable: tried.every((each) => later.get(each) === undefined || later.get(each) === saidOf(each)),
      ofHeader: tried.filter(({ header }) => header === first.header),
      asDaemon: ownId ? await repeat(parts, key, false) : first.repeats,
      ownId,
    }
  },
}

const saidOf = ({ repeats }: KeyTry): Recognised => (repeats === null ? null : recognised(repeats))

/** Sends a record for each try, and all of them again after `laterMs`. Leaves out keys with which records are refused. */
async function tryKeysLater(
  parts: QuestionContext,
  tries: readonly KeyTry[],
  ownId: boolean,
): Promise<ReadonlyMap<KeyTry, Recognised>> {
  const senders: {
    each: KeyTry
    send: (key: string) => Promise<AnsweredExchange>
    key: string
    first: AnsweredExchange
  }[] = []
  for (const each of tries) {
    if (each.repeats === null) continue
    const send = createRepeatingSender(parts, { headers: [each.header], form: each.form }, ownId)
    const key = randomUUID()
    const first = await send(key)
    if (isAcceptedRecord(first)) senders.push({ each, send, key, first })
  }
  await parts.waitMs(laterMs)
  const said = new Map<KeyTry, Recognised>()
  for (const { each, send, key, first } of senders) said.set(each, recognisedAs(first, await send(key)))
  return said
}

/** The returned function sends the same record under a key. */
function createRepeatingSender(
  parts: QuestionContext,
  key: IdempotencyKeyShape,
  newIds: boolean,
): (text: string, id?: string) => Promise<AnsweredExchange> {
  const number = parts.nextNumber()
  const data = parts.given.record === null ? { field2: `outboxd${parts.run}${number}` } : {}
  const ownId = randomUUID()
  return (text, id = ownId) =>
    submitTestRecord(parts, { shape: { key }, key: text, id: newIds ? randomUUID() : id, data })
}

async function tryKey(
  parts: QuestionContext,
  header: string,
  form: IdempotencyKeyShape['form'],
  ownId: boolean,
): Promise<KeyTry> {
  const key: IdempotencyKeyShape = { headers: [header], form }
  // With a new id each time, the service can recognise a repetition only by its key.
  const repeats = await repeat(parts, key, ownId)
  if (isAcceptedRecord(repeats.first))
    return { header, form, repeats, said: recognised(repeats) === 'no' ? 'not recognised' : 'recognised' }
  const { isAccepted, statusAndCode } = await observeChangedTestRecord(parts, { shape: { key } })
  if (isAccepted)
    throw new NoUsableAnswer(
      `a test record was refused (${describeAnswer(repeats.first.answer)}), but an equal one was accepted afterwards`,
    )
  return { header, form, repeats: null, said: statusAndCode }
}

async function repeat(parts: QuestionContext, key: IdempotencyKeyShape, newIds: boolean): Promise<Repeats> {
  const sendAs = createRepeatingSender(parts, key, newIds)
  let [keyText, id] = ['', '']
  const send = (text: string) => sendAs(text, id)
  const first = await sendAgainIfEarlierAttemptArrived(parts, () => {
    keyText = randomUUID()
    id = randomUUID()
    return send(keyText)
  })
  const again = isAcceptedRecord(first) ? [await send(keyText)] : []
  if (again[0] === undefined || recognisedAs(first, again[0]) === 'no') return { first, again, otherKey: null }
  again.push(await send(keyText))
  return { first, again, otherKey: await sendAgainIfEarlierAttemptArrived(parts, () => send(randomUUID())) }
}

type Recognised = 'same id' | 'E002' | 'other' | 'no' | null

/** @returns null if this is unknown, or the answers to the repetitions differ */
function recognised({ first, again }: Pick<Repeats, 'first' | 'again'>): Recognised {
  const seen = new Set(again.map((each) => recognisedAs(first, each)))
  return seen.size === 1 ? ([...seen][0] ?? null) : null
}

function recognisedAs(first: AnsweredExchange, second: AnsweredExchange): Recognised {
  const { answer } = second
  if (isAcceptedRecord(second)) {
    const id = transactionIdIn(second)
    if (id === null) return null
    return id === transactionIdIn(first) ? 'same id' : 'no'
  }
  if (answer.code === 'E002') return 'E002'
  return answer.status >= 400 && ![401, 403, 429].includes(answer.status) ? 'other' : null
}

const isRecognised = ({ repeats }: KeyTry): boolean => repeats !== null && !['no', null].includes(recognised(repeats))

const isDoubtful = ({ tried, isStable }: KeysSeen): boolean =>
  !isStable || tried.some(({ repeats }) => repeats !== null && recognised(repeats) === null)

/** False if records bring their ids, because the service may recognise an id under any key. */
const isKnownByContent = ({ asDaemon: { first, otherKey }, ownId }: KeysSeen): boolean =>
  !ownId && otherKey !== null && recognised({ first, again: [otherKey] }) !== 'no'

const hold = (why: string) => ({ variable: 'UNCERTAIN_POLICY', value: 'hold', why })

export async function askWhetherRepetitionIsRecognised(parts: QuestionContext): Promise<Finding> {
  const seen = await parts.sample(keysSample)
  const { first, again, otherKey } = seen.asDaemon
  const policy = parts.config.uncertainPolicy
  const lines = again.map(({ answer }) => describeAnswer(answer)).join('; ')
  const other = otherKey === null ? '' : `; under another key ${describeAnswer(otherKey.answer)}`
  const why = `first ${describeAnswer(first.answer)}; again ${lines}${other}`
  const byKey = recognised(seen.asDaemon)
  if (byKey === null || isDoubtful(seen))
    return unknownFinding(
      seen.isStable ? why : `${why}; a repetition after ${laterMs / 1_000} s was answered differently`,
      {
        set: [hold('it is not known whether the service recognises a repeated request')],
      },
    )
  if (byKey === 'no')
    return sureFinding(
      'ignored',
      `${why}: two transactions, and the same result with each of ${seen.tried.length} ways to send the key, at once and later`,
      {
        differs: policy === 'resend',
        set: [hold('the service does not recognise a repeated request: a record that is sent twice is stored twice')],
      },
    )
  const e002 = again.find(({ answer }) => answer.code === 'E002')?.answer.status
  const contract: Contract = e002 === undefined ? {} : { e002: String(e002) }
  const cannot =
    byKey === 'other'
      ? 'a repetition is refused without E002: after an attempt in doubt the daemon cannot tell a record that arrived from one that is wrong'
      : null
  if (isKnownByContent(seen)) {
    const set = [hold('two records of the same content count as one: the second would be taken for a repetition')]
    return sureFinding('by content', `${why}: known by its content`, { differs: true, set, cannot, contract })
  }
  if (byKey === 'other') {
    const set = [hold('a repetition is refused without E002')]
    return sureFinding(`refused with ${statusAndCodeText((again[0] ?? first).answer)}`, why, {
      differs: true,
      set,
      cannot,
    })
  }
  const meaning =
    byKey === 'same id'
      ? 'a repeated request gets the first answer'
      : 'a request that arrived is E002 when it is repeated, and stored once'
  return sureFinding(byKey === 'same id' ? 'replay' : 'e002', why, {
    differs: policy === 'hold',
    set: [{ variable: 'UNCERTAIN_POLICY', value: 'resend', why: meaning }],
    advice: [
      'ask the operator of the service how long it remembers a record: one that is repeated later may be stored twice',
    ],
    contract,
  })
}

export async function askIdempotencyHeader(parts: QuestionContext): Promise<Finding> {
  const seen = await parts.sample(keysSample)
  const assumed = parts.config.service.idempotencyHeader
  const [{ header = assumed } = {}] = seen.ofHeader
  if (isDoubtful(seen)) return unknownFinding('repeated requests were answered differently')
  if (isKnownByContent(seen)) return sureFinding('none', 'a record is known by its content, under any key')
  const isKnown = seen.ofHeader.some(isRecognised)
  if (!isKnown && header === assumed)
    return sureFinding(
      'none',
      `no key is recognised in ${usualIdempotencyHeaders.join(', ')}, quoted or bare, in both orders`,
    )
  const why = isKnown
    ? `a record was recognised twice under the same ${header}, and not under another key`
    : `records without ${header} are refused, although a key in this header is not recognised`
  const set = [{ variable: 'IDEMPOTENCY_HEADER', value: header, why }]
  return sureFinding(header, why, { differs: header !== assumed, set })
}

export async function askIdempotencyKeyForm(parts: QuestionContext): Promise<Finding> {
  const { ofHeader } = await parts.sample(keysSample)
  const why = ofHeader.map(({ form, said }) => `${form}: ${said}`).join('; ')
  const isKnown = ofHeader.some(isRecognised)
  const working = ofHeader.filter((each) => (isKnown ? isRecognised(each) : each.repeats !== null))
  const [first, second] = working
  if (first === undefined) return unknownFinding(why)
  if (second !== undefined) return sureFinding('either', why)
  const set = [{ variable: 'IDEMPOTENCY_KEY_FORM', value: first.form, why }]
  return sureFinding(first.form, why, { differs: first.form !== parts.config.service.idempotencyKeyForm, set })
}

export async function askHowSubmissionIdIsTreated(parts: QuestionContext): Promise<Finding> {
  const advice = [
    'put `transactionId: ${submission.id}` into the mapping’s body; then UNCERTAIN_POLICY=probe asks for a record in doubt by that id',
  ]
  if ((await findAcceptedRecordShape(parts)).ownId) {
    const { isAccepted, statusAndCode } = await observeChangedTestRecord(parts, { shape: { ownId: false } })
    const why = `a record without transactionId is answered ${statusAndCode}, one that brings it is accepted`
    if (!isAccepted) return sureFinding('required', why, { differs: true, advice })
  }
  const ids: string[] = []
  const answers: AnsweredExchange[] = []
  const first = await sendTwice(async () => {
    const id = randomUUID()
    const answer = await submitTestRecord(parts, { shape: { ownId: true }, id })
    ids.push(id)
    answers.push(answer)
    return answer
  })
  if (!isAcceptedRecord(first)) {
    await assertControlRecordAccepted(() => submitTestRecord(parts))
    return sureFinding('refused', describeAnswer(first.answer))
  }
  const kept = answers.filter((each, i) => transactionIdIn(each) === ids[i])
  if (kept.length === 1) throw new NoUsableAnswer('of two records that brought their ids, only one kept its id')
  if (kept.length === 0)
    return sureFinding('ignored', `sent ${ids[0]}, answered ${transactionIdIn(first) ?? 'without an id'}; twice`)
  const again = await submitTestRecord(parts, { shape: { ownId: true }, id: ids[0] ?? '', key: randomUUID() })
  const contract: Contract = again.answer.code === 'E002' ? { e002: String(again.answer.status) } : {}
  const why = `two records kept the ids that they brought; another with one of these was answered ${statusAndCodeText(again.answer)}`
  const cannot = isAcceptedRecord(again)
    ? 'two records may have the same id: under UNCERTAIN_POLICY=probe, the daemon may take one for the other'
    : null
  return sureFinding('taken', why, { differs: true, advice, contract, cannot })
}
