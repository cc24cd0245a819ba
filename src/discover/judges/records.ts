import { randomUUID } from 'node:crypto'
import type { DiscoverConfig } from '../../config.ts'
import { resources } from '../../resources.ts'
import { textOf } from '../../service/readJson.ts'
import { type AnsweredExchange, fieldOf, isSuccess, lineOf, nameOf, type Response, statusIn } from '../exchange.ts'
import { type Finding, found, likely, sure, unknown } from '../finding.ts'
import { CannotAsk, NoAnswer, type Parts, type Sample } from '../question.ts'
import {
  acceptedRecord,
  acceptedShape,
  controlSample,
  customerOf,
  explainRefused,
  follow,
  idIn,
  isTaken,
  type KeyShape,
  type Observed,
  observeMax,
  observeRecord,
  type RecordShape,
  submit,
  usualHeaders,
} from '../testRecord.ts'

/** Two transactions followed to their ends, or for a minute (docs/reference/interface.md, 3.1). */
interface Lives {
  /** The answers to two records. */
  taken: readonly AnsweredExchange[]
  polls: readonly (readonly AnsweredExchange[])[]
}

/** When to ask again: often at first, as the first states may be short. A minute in all. */
const waitsMs = [0, 150, 350, 700, 2_000, 4_000, 8_000, 15_000, 30_000]

export const livesSample: Sample<Lives> = {
  name: 'the lives of two transactions',
  requestsMax: 1 + 2 * waitsMs.length,
  recordsMax: 1,
  samples: [controlSample],
  async take(parts) {
    await acceptedShape(parts)
    const { exchange: first } = await acceptedRecord(parts)
    const second = await submit(parts)
    const ids = [first, second].flatMap((each) => idIn(each) ?? [])
    const paths = ids.map((id) => `${resources.data.path}/${encodeURIComponent(id)}`)
    return { taken: [first, second], polls: await follow(parts, paths, waitsMs) }
  },
}

export async function askSubmission(parts: Parts): Promise<Finding> {
  const { shape, tried } = await parts.sample(controlSample)
  const last = tried.at(-1)?.exchange
  if (last === undefined) return unknown('no record was sent')
  if (shape === null) {
    const why = explainRefused(last.answer)
    return unknown(why, {
      assumed: assumedSubmission,
      cannot: `a record is answered ${nameOf(last.answer)}`,
      advice: [why],
    })
  }
  const second = idIn(last) === null ? await submit(parts) : (await parts.sample(livesSample)).taken[1]
  return judgeSubmission([last.answer, ...(second === undefined ? [] : [second.answer])])
}

const assumedSubmission = '200 with a transactionId'

/** Pure. @param answers to records that were taken */
export function judgeSubmission(answers: readonly Response[]): Finding {
  const [seen] = answers
  if (seen === undefined) return unknown('no record was taken')
  const assumed = assumedSubmission
  const why = answers.map(lineOf).join('; ')
  const certainty = answers.length > 1 ? 'sure' : 'likely'
  if (new Set(answers.map(({ status }) => status)).size > 1)
    return unknown(`equal records were answered differently: ${why}`, { assumed })
  if (idIn({ answer: seen }) === null)
    return found(certainty, `${seen.status} without ${resources.data.idField}`, why, {
      assumed,
      differs: true,
      cannot: `without a ${resources.data.idField} that can be read, each record becomes uncertain, as the service cannot be asked for it`,
    })
  return found(certainty, String(seen.status), why, {
    assumed,
    differs: seen.status !== 200,
    contract: { submit_ok: String(seen.status) },
  })
}

/** docs/why/contract.md: what the daemon reads as pending, and as an end. */
const readStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])
const isEnd = (status: string | undefined) => status !== undefined && /^(completed|failed)$/i.test(status.trim())

/** What records, or orders, said of themselves one after the other. Pure. */
export function judgeStatusValues(lives: readonly (readonly AnsweredExchange[])[]): Finding {
  const assumed = 'accepted or pending, then completed or failed'
  const said = lives.map((polls) => polls.map(statusIn).filter((status) => status !== null))
  // The life that showed most comes first: it has the order.
  const statuses = [...new Set(said.toSorted((a, b) => new Set(b).size - new Set(a).size).flat())]
  const last = lives.flat().at(-1)
  if (last === undefined) return unknown('no status was asked for', { assumed })
  if (statuses.length === 0)
    return unknown(`no status can be read: ${lineOf(last.answer)}`, {
      assumed,
      differs: true,
      cannot:
        'an answer without a status counts as a breach of contract, and the transaction is asked for again and again',
    })
  const what = statuses.join(', ')
  const foreign = statuses.filter((status) => !readStatuses.has(status.trim().toLowerCase()))
  const ended = said.filter((each) => isEnd(each.at(-1)) || foreign.includes(each.at(-1) ?? ''))
  const agree =
    said.length > 1 && said.every((each) => new Set(each).size === statuses.length) && ended.length === said.length
  const why = said.map((each) => each.join(', ')).join('; ') + (ended.length === 0 ? '; the end was not seen' : '')
  if (foreign.length === 0) return found(agree ? 'sure' : 'likely', what, why, { assumed })
  return found(agree ? 'sure' : 'likely', what, why, {
    assumed,
    differs: true,
    cannot: `${foreign.join(', ')} is not a status that the daemon knows: it counts a breach of contract and asks again, so a record whose last status it is never ends`,
  })
}

/** What a record is answered with its fields in one place: right, and with an amount that is wrong on purpose. */
interface PlaceSeen {
  right: boolean
  wrong: boolean | null
}

/** Where the service reads the client's fields of docs/reference/interface.md, 2.5. */
interface Mapped {
  data: PlaceSeen
  beside: PlaceSeen | null
  /** Whether a record without these fields is taken. */
  without: boolean
  why: string
}

/** A field that the service does not read is taken whatever it holds: what is wrong on purpose tells where it is read. */
export const mappedSample: Sample<Mapped> = {
  name: 'records with a wrong amount, here and there',
  requestsMax: 6 * observeMax,
  recordsMax: 14,
  samples: [controlSample],
  async take(parts) {
    const shape = await acceptedShape(parts)
    const seen: string[] = []
    const look = async (what: string, change: Parameters<typeof observeRecord>[1]) => {
      const observed = await observeRecord(parts, change)
      seen.push(`${what}: ${observed.name}`)
      return observed.taken
    }
    const at = async (place: 'data' | 'beside'): Promise<PlaceSeen> => {
      const isOwn = shape.place === place
      const right =
        isOwn ||
        (await look(`in ${place}`, { shape: { place } })) ||
        (await look(`in ${place}, the amount as ${otherOf(shape.amount)}`, {
          shape: { place, amount: otherOf(shape.amount) },
        }))
      const mapped = { total_amount: 'noamount' }
      return { right, wrong: right ? await look(`a wrong amount in ${place}`, { shape: { place }, mapped }) : null }
    }
    const data = await at('data')
    const beside = isRead(data) ? null : await at('beside')
    const without = shape.place === 'nowhere' || (await look('without them', { shape: { place: 'nowhere' } }))
    return { data, beside, without, why: seen.join('; ') }
  },
}

const otherOf = (amount: RecordShape['amount']) => (amount === 'text' ? 'number' : 'text')
const isRead = (place: PlaceSeen | null) => place?.right === true && place.wrong === false
const placeRead = ({ data, beside }: Mapped) => (isRead(data) ? 'data' : isRead(beside) ? 'beside' : null)

/** Each observation was made twice, and each refusal beside a record that was taken. Pure. */
export function judgeMappedFields(mapped: Mapped): Finding {
  const assumed = 'in data, as mappings/data.yaml sends them'
  const { data, beside, without, why } = mapped
  const place = placeRead(mapped)
  const need = without ? 'optional' : 'required'
  if (place === 'data') return sure(`in data, ${need}`, why, { assumed })
  if (place === 'beside')
    return sure(`beside data, ${need}`, why, {
      assumed,
      differs: true,
      advice: [
        'in the mapping’s `body`, put customer_id, order_date and total_amount beside data: in data the service does not read them',
      ],
    })
  if (!data.right && without)
    return sure('refused', why, {
      assumed,
      differs: true,
      advice: ['take customer_id, order_date and total_amount out of the mapping’s `body`; ask where they belong'],
    })
  if (!without || (beside !== null && !beside.right && !data.right)) return unknown(why, { assumed })
  return sure('ignored', why, {
    assumed,
    differs: true,
    advice: [
      'the service does not read amount, date and customer_id where mappings/data.yaml puts them: ask where they belong',
    ],
  })
}

/** A record with an amount as a number, and one with the same as text, if amounts are read. */
interface Amounts {
  place: 'data' | 'beside' | null
  number: boolean
  text: boolean
  why: string
}

export const amountsSample: Sample<Amounts> = {
  name: 'an amount as a number and as text',
  requestsMax: 2 * observeMax,
  recordsMax: 5,
  samples: [mappedSample],
  async take(parts) {
    const place = placeRead(await parts.sample(mappedSample))
    if (place === null) return { place, number: false, text: false, why: 'the service reads no amount' }
    const as = (amount: RecordShape['amount']) => observeRecord(parts, { shape: { place, amount } })
    const [number, text] = [await as('number'), await as('text')]
    return { place, number: number.taken, text: text.taken, why: `a number: ${number.name}; text: ${text.name}` }
  },
}

/** Pure. */
export function judgeAmount({ place, number, text, why }: Amounts): Finding {
  const assumed = 'a number, as mappings/data.yaml sends it'
  if (place === null) return likely('not read', why, { assumed })
  if (number) return sure(text ? 'number or text' : 'number', why, { assumed })
  if (!text) return unknown(why, { assumed })
  return sure('text', why, { assumed, differs: true, advice: ['in the mapping, give total_amount `as: string`'] })
}

const dates = {
  milliseconds: '2026-01-02T03:04:05.678Z',
  zero: '2026-01-02T03:04:05+00:00',
  offset: '2026-01-02T03:04:05+01:00',
}
/** Of a date that the service cannot take for one: only a service that refuses it reads dates. */
const noDate = '2026-13-42T03:04:05Z'

export async function askOrderDate(parts: Parts): Promise<Finding> {
  const { place, number } = await parts.sample(amountsSample)
  const assumed = 'UTC with Z and the digits of the client’s fraction, as mappings send it'
  if (place === null)
    return likely('not read', 'the service reads no amount, and the date stands beside it', { assumed })
  const withDate = (order_date: string) =>
    observeRecord(parts, { shape: { place, amount: number ? 'number' : 'text' }, mapped: { order_date } })
  const none = await withDate(noDate)
  if (none.taken) return likely('not read', `the date ${noDate} is taken`, { assumed })
  const [milliseconds, zero, offset] = [
    await withDate(dates.milliseconds),
    await withDate(dates.zero),
    await withDate(dates.offset),
  ]
  const why = `with milliseconds: ${milliseconds.name}; with +00:00: ${zero.name}; with +01:00: ${offset.name}`
  const offsets = offset.taken ? 'any offset' : zero.taken ? 'UTC' : 'Z alone'
  const what = `${milliseconds.taken ? 'milliseconds' : 'whole seconds'}, ${offsets}`
  if (milliseconds.taken) return sure(what, why, { assumed })
  return sure(what, why, {
    assumed,
    differs: true,
    cannot:
      'a date that the client writes with a fraction of a second is sent with it, and refused: have the ERP write whole seconds',
  })
}

export const orderDateMax = 4 * observeMax

/** One record under one key twice more, and a like one under another key. */
interface Repeats {
  key: KeyShape
  first: AnsweredExchange
  again: readonly AnsweredExchange[]
  /** The same under another key: tells a service that knows the key from one that knows the content. */
  otherKey: AnsweredExchange
}

interface RepeatsSeen extends Repeats {
  /** What the service makes of a key in another header or form, if not of the one that is configured. */
  tried: readonly KeyShape[]
}

/** As the daemon sends the key; if nothing comes of that, in the other form, and in the other usual headers. */
export const repeatsSample: Sample<RepeatsSeen> = {
  name: 'a record again under its idempotency key',
  requestsMax: 4 + 3 * 3 + usualHeaders.length + 4,
  recordsMax: 4 + 3 * 3 + usualHeaders.length + 4,
  samples: [controlSample],
  async take(parts) {
    const { key: own } = await acceptedShape(parts)
    const other = own.form === 'bare' ? 'quoted' : 'bare'
    const tried: KeyShape[] = []
    const asSent = await repeats(parts, own)
    tried.push(own)
    if (recognised(asSent) !== 'no') return { ...asSent, tried }
    const others: KeyShape[] = [
      { headers: own.headers, form: other },
      { headers: usualHeaders, form: 'quoted' },
      { headers: usualHeaders, form: 'bare' },
    ]
    for (const key of others) {
      tried.push(key)
      const seen = await repeats(parts, key).catch(() => null)
      if (seen === null || recognised(seen) === 'no') continue
      const narrowed = key.headers.length === 1 ? seen : await inOneHeader(parts, key)
      if (narrowed !== null) return { ...narrowed, tried }
    }
    return { ...asSent, tried }
  },
}

async function inOneHeader(parts: Parts, { headers, form }: KeyShape): Promise<Repeats | null> {
  for (const header of headers) {
    const seen = await repeats(parts, { headers: [header], form })
    if (recognised(seen) !== 'no') return seen
  }
  return null
}

async function repeats(parts: Parts, key: KeyShape): Promise<Repeats> {
  const [one, id] = [randomUUID(), randomUUID()]
  const record = (given: string) => submit(parts, { shape: { key }, key: given, id, data: sameField2(parts) })
  const first = await record(one)
  if (!isTaken(first)) throw new NoAnswer(`the first was not taken: ${lineOf(first.answer)}`)
  const again = [await record(one)]
  if (recognisedAs(first, again[0]) !== 'no') again.push(await record(one))
  const otherKey = again.length > 1 ? await record(randomUUID()) : first
  return { key, first, again, otherKey }
}

/** A repetition has the very contents of the first. */
const sameField2 = ({ given, run }: Parts) => (given.record === null ? { field2: `outboxd${run}same` } : {})

type Recognised = 'same id' | 'E002' | 'other' | 'no' | null

/** Whether all repetitions were known for the first; null if they contradict each other or say neither. Pure. */
export function recognised({ first, again }: Pick<Repeats, 'first' | 'again'>): Recognised {
  const seen = new Set(again.map((each) => recognisedAs(first, each)))
  return seen.size === 1 ? ([...seen][0] ?? null) : null
}

function recognisedAs(first: AnsweredExchange, second: AnsweredExchange | undefined): Recognised {
  if (second === undefined) return null
  const { answer } = second
  if (isTaken(second)) return idIn(second) === null ? null : idIn(second) === idIn(first) ? 'same id' : 'no'
  if (answer.code === 'E002') return 'E002'
  return answer.status >= 400 && ![401, 403, 429].includes(answer.status) ? 'other' : null
}

type Policy = DiscoverConfig['uncertainPolicy']

/** Pure. @param ownId whether each record brings its id, which a service may know it by */
export function judgeIdempotency(seen: RepeatsSeen, policy: Policy, ownId: boolean): Finding {
  const { first, again, otherKey } = seen
  const assumed = `ignored, unless UNCERTAIN_POLICY is resend (it is ${policy})`
  const why = `first ${lineOf(first.answer)}; again ${again.map(({ answer }) => lineOf(answer)).join('; ')}; under another key ${lineOf(otherKey.answer)}`
  const byKey = recognised(seen)
  const byContent = otherKey === first ? 'no' : recognised({ first, again: [otherKey] })
  if (byKey === null) return unknown(why, { assumed })
  if (byKey === 'no') return ignored(why, policy, seen.tried)
  const e002 = again.find(({ answer }) => answer.code === 'E002')?.answer.status
  const contract: Finding['contract'] = e002 === undefined ? {} : { e002: String(e002) }
  if (byContent !== 'no' && !ownId)
    return sure('by content', `${why}: a record is known by its content, under any key`, {
      assumed,
      differs: true,
      set: [hold('two records of the same content count as one: a second one would be taken for a repetition')],
      cannot: byKey === 'other' ? refusedRepeat : null,
      contract,
    })
  if (byKey === 'other')
    return sure(`refused with ${nameOf(again[0]?.answer ?? first.answer)}`, why, {
      assumed,
      differs: true,
      set: [hold('a repetition is refused without E002')],
      cannot: refusedRepeat,
    })
  const meaning =
    byKey === 'same id'
      ? 'a request that is sent again under its key gets the first answer'
      : 'a request that arrived is E002 when it is sent again, and stored once'
  const set = [{ variable: 'UNCERTAIN_POLICY', value: 'resend', why: meaning }]
  return sure(byKey === 'same id' ? 'replay' : 'e002', why, { assumed, differs: policy === 'hold', set, contract })
}

const refusedRepeat =
  'a repetition is refused without E002: after an attempt in doubt the daemon cannot tell a record that arrived from one that is wrong'

const hold = (why: string) => ({ variable: 'UNCERTAIN_POLICY', value: 'hold', why })

function ignored(why: string, policy: Policy, tried: readonly KeyShape[]): Finding {
  return sure('ignored', `${why}: two transactions, and the same in ${tried.length} ways to send a key`, {
    assumed: policy === 'resend' ? 'recognised, as UNCERTAIN_POLICY=resend says' : 'ignored',
    differs: policy === 'resend',
    set: [hold('the service does not know a request again: what is sent twice is there twice')],
  })
}

/** Pure. */
export function judgeIdempotencyHeader(seen: RepeatsSeen, assumed: string, ownId: boolean): Finding {
  const { key, first, otherKey, tried } = seen
  const byKey = recognised(seen)
  const [header = assumed] = key.headers
  if (byKey === null) return unknown('a repeated request was not answered', { assumed })
  if (byKey === 'no') {
    const isDemanded = tried[0]?.headers[0]?.toLowerCase() !== assumed.toLowerCase()
    const why = `a key in ${usualHeaders.join(', ')} is not looked at, quoted or bare`
    return isDemanded
      ? headerFound(header, assumed, 'records without it are refused, though it is not looked at')
      : sure('none', why, { assumed })
  }
  const byContent = recognised({ first, again: [otherKey] })
  if (byContent !== 'no')
    return ownId
      ? unknown('a record is known by the id that it brings, under any key', { assumed })
      : sure('none', 'a record is known by its content, under any key', { assumed })
  return headerFound(
    header,
    assumed,
    `a record that was sent again under the same ${header} was recognised twice, under another key it was not`,
  )
}

const headerFound = (header: string, assumed: string, why: string) =>
  sure(header, why, {
    assumed,
    differs: header.toLowerCase() !== assumed.toLowerCase(),
    set: [{ variable: 'IDEMPOTENCY_HEADER', value: header, why }],
  })

/** Quoted or bare: which of the two is taken, and, if keys are known again, known again. */
export async function askIdempotencyForm(parts: Parts): Promise<Finding> {
  const assumed = parts.config.service.idempotencyKeyForm
  const seen = await parts.sample(repeatsSample)
  const isKnown = !['no', null].includes(recognised(seen))
  const { headers } = isKnown ? seen.key : (await acceptedShape(parts)).key
  const look = async (form: KeyShape['form']) => {
    const key: KeyShape = { headers, form }
    const observed = await observeRecord(parts, { shape: { key } })
    if (!observed.taken || !isKnown) return { form, works: observed.taken, said: `${form}: ${observed.name}` }
    const known = recognised(await repeats(parts, key))
    return { form, works: known !== 'no', said: `${form}: ${known === 'no' ? 'not known again' : 'known again'}` }
  }
  const looks = [await look('quoted'), await look('bare')]
  const why = looks.map(({ said }) => said).join('; ')
  const [first, second] = looks.filter(({ works }) => works)
  if (first === undefined) return unknown(why, { assumed })
  if (second !== undefined) return sure('either', why, { assumed })
  const set = [{ variable: 'IDEMPOTENCY_KEY_FORM', value: first.form, why }]
  return sure(first.form, why, { assumed, differs: first.form !== assumed, set })
}

export const idempotencyFormMax = 2 * (observeMax + 4)

/** A record that brings its own transactionId, twice over; and whether one without it is refused. */
export async function askOwnId(parts: Parts): Promise<Finding> {
  const assumed = 'no: mappings send none'
  const shape = await acceptedShape(parts)
  const advice = [
    'put `transactionId: ${submission.id}` into the mapping’s body; then UNCERTAIN_POLICY=probe asks for a record in doubt by that id',
  ]
  if (shape.ownId) {
    const bare = await observeRecord(parts, { shape: { ownId: false } })
    const why = `a record without transactionId is answered ${bare.name}, one that brings it is taken`
    if (!bare.taken) return sure('required', why, { assumed, differs: true, advice })
  }
  const ids = [randomUUID(), randomUUID()]
  const sent: AnsweredExchange[] = []
  for (const id of ids) sent.push(await submit(parts, { shape: { ownId: true }, id }))
  const [first, second] = sent
  if (first === undefined || second === undefined || isTaken(first) !== isTaken(second))
    throw new NoAnswer(
      `two such records were answered differently: ${sent.map(({ answer }) => lineOf(answer)).join('; ')}`,
    )
  const line = lineOf(first.answer)
  if (!isTaken(first)) {
    await checkControl(parts)
    return sure('refused', line, { assumed })
  }
  const kept = sent.filter((each, i) => idIn(each) === ids[i])
  if (kept.length === 1) throw new NoAnswer('of two records that brought their ids one kept it')
  if (kept.length === 0)
    return sure('ignored', `sent ${ids[0]}, answered ${idIn(first) ?? 'without an id'}; the same again`, { assumed })
  const again = await submit(parts, { shape: { ownId: true }, id: ids[0] ?? '', key: randomUUID() })
  const e002: Finding['contract'] = again.answer.code === 'E002' ? { e002: String(again.answer.status) } : {}
  return sure(
    'taken',
    `${ids.length} records kept the ids that they brought; another record with one of them was answered ${nameOf(again.answer)}`,
    {
      assumed,
      differs: true,
      advice,
      contract: e002,
      cannot: isTaken(again) ? 'two records may have the same id: with probe, one may be taken for the other' : null,
    },
  )
}

async function checkControl(parts: Parts): Promise<void> {
  const control = await submit(parts)
  if (!isTaken(control))
    throw new NoAnswer(`a record like those that were taken is refused now: ${lineOf(control.answer)}`)
}

/** Customer ids as long as may be, by different ways to count, beside ids that are short by each of them. */
export async function askCustomerLength(parts: Parts): Promise<Finding> {
  const customer = customerOf(parts.given)
  const withId = (customerId: string) => observeRecord(parts, { customerId })
  const ten = await withId(customer.padEnd(10, '0').slice(0, 10))
  const eleven = await withId(customer.padEnd(11, '0').slice(0, 11))
  const seen: LengthsSeen = {
    ten,
    eleven,
    bytes: await withId('é'.repeat(10)),
    fewBytes: null,
    halves: null,
    fewHalves: null,
  }
  if (!isLike(seen.bytes, ten)) seen.fewBytes = await withId('é'.repeat(5))
  else seen.halves = await withId('𝒳'.repeat(10))
  if (seen.halves !== null && !isLike(seen.halves, ten)) seen.fewHalves = await withId('𝒳'.repeat(5))
  return judgeCustomerLength(seen)
}

export const customerLengthMax = 5 * observeMax

interface LengthsSeen {
  ten: Observed
  eleven: Observed
  /** Ten characters of two bytes each; and five of them, if ten are refused. */
  bytes: Observed
  fewBytes: Observed | null
  /** Ten characters of two UTF-16 units each; and five. */
  halves: Observed | null
  fewHalves: Observed | null
}

/** That a customer is unknown is said of an id that fits: the answer is then that of the ten characters. */
function isLike(seen: Observed, ten: Observed): boolean {
  return seen.taken === ten.taken && (seen.taken || (seen.name === ten.name && wordsOf(seen) === wordsOf(ten)))
}

/** The words of a refusal without the customer's id, and without what changes from answer to answer. */
function wordsOf({ exchange }: Observed): string {
  const id = textOf(fieldOf(JSON.parse(exchange.body ?? 'null'), 'customerId')) ?? ''
  return exchange.answer.text.replaceAll(id, '#').replaceAll(/[0-9a-f-]{12,}|\d{4,}|[\d:.]+Z/gi, '#')
}

/** Pure. */
export function judgeCustomerLength({ ten, eleven, bytes, fewBytes, halves, fewHalves }: LengthsSeen): Finding {
  const assumed = 'characters, as `maxLength` of a mapping counts'
  const say = (name: string, seen: Observed | null) => (seen === null ? [] : [`${name}: ${seen.name}`])
  const why = [
    ...[...say('10', ten), ...say('11', eleven), ...say('10 of two bytes', bytes), ...say('5 of them', fewBytes)],
    ...[...say('10 of two halves', halves), ...say('5 of them', fewHalves)],
  ].join(', ')
  if (isLike(eleven, ten))
    return ten.taken
      ? sure('not limited', why, {
          assumed,
          differs: true,
          advice: ['the service takes longer ids than the interface says: keep to 10 all the same'],
        })
      : unknown(`${why}: that does not tell the length from the customer`, { assumed })
  const counted = (what: string, letters: string) =>
    sure(what, why, {
      assumed,
      differs: true,
      cannot: `a mapping counts characters: the service may refuse a customerId with ${letters} though it maps`,
    })
  if (fewBytes !== null)
    return isLike(fewBytes, ten)
      ? counted('bytes', 'letters beyond ASCII')
      : unknown(`${why}: letters beyond ASCII are refused at any length`, {
          assumed,
          advice: ['the service takes only plain letters and digits in a customerId: say so in the mapping'],
        })
  if (halves === null) return unknown(why, { assumed })
  if (isLike(halves, ten)) return sure('characters', why, { assumed })
  return fewHalves !== null && isLike(fewHalves, ten)
    ? counted('UTF-16 units', 'emoji or the like')
    : unknown(`${why}: emoji are refused at any length`, { assumed })
}

/** The control's own characters over again, so that a rule on characters is not taken for one on the length. */
const longLength = 1_000

export async function askField2(parts: Parts): Promise<Finding> {
  await acceptedShape(parts)
  const own = textOf(fieldOf(fieldOf(parts.given.record, 'data'), 'field2')) || `outboxd${parts.run}0000`
  const withText = (field2: string) => observeRecord(parts, { data: { field2 } })
  const [empty, long] = [
    await withText(''),
    await withText(own.repeat(Math.ceil(longLength / own.length)).slice(0, longLength)),
  ]
  const odd = await withText(oddText(own.length))
  return judgeField2({ empty, long, odd })
}

/** Of the same length as the control's, with what a rule on characters would refuse. */
export const oddText = (length: number): string => 'Ä ;"é'.repeat(Math.ceil(length / 5)).slice(0, length)

/** Pure. */
export function judgeField2({
  empty,
  long,
  odd,
}: Record<'empty' | 'long' | 'odd', Pick<Observed, 'taken' | 'exchange'>>): Finding {
  const assumed = 'any text'
  const limits = [
    empty.taken ? [] : 'not empty',
    long.taken ? [] : `below ${longLength.toLocaleString('en')} characters`,
    odd.taken ? [] : 'not every character',
  ].flat()
  const [said, saidLong, saidOdd] = [empty, long, odd].map(({ exchange }) => lineOf(exchange.answer))
  const why = `empty: ${said}; ${longLength} characters: ${saidLong}; ${JSON.stringify(oddText(5))}: ${saidOdd}`
  if (limits.length === 0) return sure('any text', why, { assumed })
  const advice = [
    'say so in the mapping (required, maxLength), so that such a record is rejected before it costs a request',
  ]
  return sure(limits.join(', '), why, { assumed, differs: true, advice })
}

const largestBytes = 16 * 1_048_576
/** One for what a body has besides, from 32 kB to the largest, doubling, then two halvings, and a control. */
export const sizeStepsMax = 10 + 4

/** The largest body that was taken, by doubling and halving; `data.padding` makes it long. */
export async function askBodySize(parts: Parts): Promise<Finding> {
  const padded = (padding: string) => submit(parts, { data: { padding } })
  const base = await padded('')
  if (!isTaken(base)) throw new CannotAsk(`a record with one more field is refused: ${lineOf(base.answer)}`)
  const baseBytes = base.body?.length ?? 0
  let taken = 0
  let refused: { bytes: number; answer: Response } | null = null
  const look = async (bytes: number) => {
    const { answer } = await padded('x'.repeat(Math.max(0, bytes - baseBytes)))
    if (isSuccess(answer)) taken = bytes
    else refused = { bytes, answer }
  }
  for (let bytes = 32_768; bytes <= largestBytes && refused === null; bytes *= 2) await look(bytes)
  for (let i = 0; i < 2 && refused !== null; i++)
    await look(Math.round((taken + (refused as { bytes: number }).bytes) / 2))
  if (refused !== null) await checkControl(parts)
  return judgeBodySize(taken, refused, parts.config.payloadMaxBytes)
}

/** Pure. */
export function judgeBodySize(
  taken: number,
  refused: { bytes: number; answer: Response } | null,
  payloadMaxBytes: number,
): Finding {
  const assumed = `payloads of up to ${payloadMaxBytes} bytes (PAYLOAD_MAX_BYTES)`
  if (refused === null) return sure(`more than ${taken}`, `${taken} bytes were taken`, { assumed })
  const why = `${taken} bytes were taken, ${refused.bytes} were answered ${nameOf(refused.answer)}`
  if (taken === 0) return unknown(why, { assumed })
  const differs = taken < payloadMaxBytes
  const set = [
    {
      variable: 'PAYLOAD_MAX_BYTES',
      value: String(taken),
      why: `${why}: a payload that maps to more is rejected unread`,
    },
  ]
  return likely(String(taken), why, { assumed, differs, set: differs ? set : [] })
}
