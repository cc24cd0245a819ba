import { serviceResources } from '../../resources.ts'
import {
  accessTokenIn,
  type Exchange,
  endedAtMs,
  isSuccess,
  rateRemainingOf,
  transactionStatusIn,
} from '../exchange.ts'
import { createFinding, type Finding, likelyFinding, unknownFinding } from '../finding.ts'
import { isAcceptedRecord } from '../observe.ts'
import type { QuestionParts, Sample } from '../question.ts'
import { keyHeaders, recordBody, requireRecordShape, submitTestRecord } from '../testRecord.ts'
import { orderSample, postOrder } from './orders.ts'
import { recordPollsSample } from './records.ts'

/**
 * Reads what the limit counts from X-RateLimit-Remaining on accepted records: how much less remains after requests of
 * one kind than before. A header that does not fall by one with each record is not trusted.
 */

type Kind = 'poll' | 'order' | 'refused'

export interface RemainingHeader {
  /** By how much X-RateLimit-Remaining fell with each record; null if the header was missing. */
  falls: readonly (number | null)[]
  /** How much X-RateLimit-Remaining fell for two requests of `kind` between two records. The record's own share is subtracted. */
  counted: readonly { kind: Kind; less: number | null }[]
  tokens: { first: number | null; second: readonly (number | null)[]; third: number | null; firstAgain: number | null }
}

const sentOfKind = 2
const noTokens: RemainingHeader['tokens'] = { first: null, second: [], third: null, firstAgain: null }
const watchMax = 4 + 3 * (sentOfKind + 1) + 7

export const remainingHeaderSample: Sample<RemainingHeader> = {
  name: 'records, and other requests between them',
  requestsMax: 2 * watchMax,
  recordsMax: 2 * 14,
  samples: [recordPollsSample],
  async take(parts) {
    const first = await watchHeader(parts)
    // If a window ended since, it freed what had been used, so this is repeated.
    const isRisen = [...first.falls, ...first.counted.map(({ less }) => less)].some((fall) => (fall ?? 0) < 0)
    return isRisen ? watchHeader(parts) : first
  },
}

async function watchHeader(parts: QuestionParts): Promise<RemainingHeader> {
  const mayOrder = parts.given.orderCustomer !== null && (await parts.sample(orderSample)).shape !== null
  const remainingAfterRecord = async () => rateRemainingOf((await submitTestRecord(parts)).answer)
  let last = await remainingAfterRecord()
  const fall = async () => {
    const before = last
    last = await remainingAfterRecord()
    return before === null || last === null ? null : before - last
  }
  const falls = [await fall(), await fall()]
  await parts.waitMs(1_500) // A limit that refills little by little shows it now.
  falls.push(await fall())
  const counted: { kind: Kind; less: number | null }[] = []
  if (whyHeaderIsNotTrusted({ falls }) !== null) return { falls, counted, tokens: noTokens }

  const shape = await requireRecordShape(parts)
  const countKind = async (kind: Kind, send: () => Promise<unknown>) => {
    for (let i = 0; i < sentOfKind; i++) await send()
    const fell = await fall()
    counted.push({ kind, less: fell === null ? null : fell - 1 })
  }
  const post = (body: string, accessToken?: string) =>
    parts.call({
      ...{ method: 'POST', path: serviceResources.data.path, body, headers: keyHeaders(shape.key) },
      ...(accessToken === undefined ? {} : { accessToken }),
    })
  const path = await findReadableTransactionPath(parts)
  if (path !== null) await countKind('poll', () => parts.get(path))
  await countKind('refused', () => post('{}'))
  if (mayOrder) await countKind('order', () => postOrder(parts))

  const former = await parts.token()
  const renew = () => parts.askToken(parts.config.service.clientSecret)
  const first = await remainingAfterRecord()
  await renew()
  const second = [await remainingAfterRecord(), await remainingAfterRecord()]
  const again = await post(recordBody(parts, shape), former)
  const firstAgain = isAcceptedRecord(again) ? rateRemainingOf(again.answer) : null
  await renew()
  return { falls, counted, tokens: { first, second, third: await remainingAfterRecord(), firstAgain } }
}

export async function findReadableTransactionPath(parts: QuestionParts): Promise<string | null> {
  const { polls } = await parts.sample(recordPollsSample)
  const prefix = new URL(parts.config.service.baseUrl).pathname.replace(/\/+$/, '')
  const shown = polls.flat().findLast((each) => transactionStatusIn(each) !== null)
  return shown?.path.slice(prefix.length) ?? null
}

/** The reason why the header is not trusted; null if it is. */
export function whyHeaderIsNotTrusted({ falls }: Pick<RemainingHeader, 'falls'>): string | null {
  if (falls.includes(null)) return 'X-RateLimit-Remaining is not on the answers to records'
  return falls.every((fall) => fall === 1)
    ? null
    : `X-RateLimit-Remaining is not trusted: records in a row made it fall by ${falls.join(', ')}`
}

const paysAnyway = 'the daemon takes a slot for them anyway, which keeps any limit'
const kinds = {
  poll: { yes: 'yes', no: 'no', advice: paysAnyway },
  refused: { yes: 'yes', no: 'no', advice: paysAnyway },
  order: { yes: 'shared', no: 'apart', advice: 'the daemon counts records and orders together, which keeps any limit' },
} as const

export function judgeIfRequestKindCounts(header: RemainingHeader, kind: Kind): Finding {
  const { yes, no, advice } = kinds[kind]
  const doubt = whyHeaderIsNotTrusted(header)
  if (doubt !== null) return unknownFinding(doubt, { assumed: yes })
  const counted = header.counted.find((each) => each.kind === kind)
  if (counted === undefined) return unknownFinding('no such request could be made', { assumed: yes })
  const why = `${sentOfKind} such requests between two records lowered the remaining number by ${counted.less}`
  if (counted.less === sentOfKind) return likelyFinding(yes, why, { assumed: yes })
  if (counted.less !== 0) return unknownFinding(why, { assumed: yes })
  return likelyFinding(no, why, { assumed: yes, differs: true, advice: [advice] })
}

export const askIfRequestKindCounts = (kind: Kind) => async (parts: QuestionParts) =>
  judgeIfRequestKindCounts(await parts.sample(remainingHeaderSample), kind)

interface OfTokens {
  scope: 'client' | 'token' | null
  /** True if a request for a token counts; null if that cannot be seen. */
  counts: boolean | null
  why: string
}

/** Checks twice whether the count goes on with a new token. */
function readTokens({ tokens }: RemainingHeader): OfTokens {
  const { first, second, third, firstAgain } = tokens
  const [one, two] = second
  const why = `remaining: ${first} with one token, ${second.join(' and ')} with the next, ${firstAgain ?? 'none'} with the first again, ${third} with a third`
  const nothing = { scope: null, counts: null, why }
  if (first === null || one == null || two == null || third === null || one - two !== 1) return nothing
  const step = first - one
  const last = firstAgain !== null && firstAgain < two ? firstAgain : two
  if ((step === 1 || step === 2) && last - third === step) return { scope: 'client', counts: step === 2, why }
  const isApart = one > first && third > first && (firstAgain === null || firstAgain === first - 1)
  return isApart ? { scope: 'token', counts: null, why } : nothing
}

export function judgeRateScope(header: RemainingHeader): Finding {
  const assumed = 'client'
  const { scope, why } = readTokens(header)
  if (scope === null) return unknownFinding(whyHeaderIsNotTrusted(header) ?? why, { assumed })
  if (scope === 'client')
    return likelyFinding('client', `${why}; a limit for the address would look the same`, { assumed })
  return likelyFinding('token', why, {
    assumed,
    differs: true,
    advice: [
      'the daemon counts all tokens together, which keeps any limit. If each instance has a token, they could send more',
    ],
  })
}

export function judgeIfTokenCallsCount(header: RemainingHeader): Finding {
  const assumed = 'no; the daemon takes a slot for each token request anyway'
  const { scope, counts, why } = readTokens(header)
  if (counts !== null) return likelyFinding(counts ? 'yes' : 'no', why, { assumed })
  const apart = 'each token has its own limit, which begins after the request for the token'
  return unknownFinding(whyHeaderIsNotTrusted(header) ?? (scope === 'token' ? apart : why), { assumed })
}

export interface LimitObservation {
  fromMs: number
  toMs: number
  counts: boolean | null
  /** X-RateLimit-Remaining; null for other requests than accepted records, or if it is a different token's. */
  remaining: number | null
}

/** If each token has a limit, uses that of the first token. */
export function observeLimitUse(exchanges: readonly Exchange[], header: RemainingHeader): LimitObservation[] {
  const counts = (kind: Kind) => {
    const { found } = judgeIfRequestKindCounts(header, kind)
    return found === null ? null : found === kinds[kind].yes
  }
  const [polls, failures, orders] = [counts('poll'), counts('refused'), counts('order')]
  const { scope, counts: tokens } = readTokens(header)
  const firstToken = exchanges.flatMap(({ answer }) => accessTokenIn(answer) ?? [])[0]
  const isCounted = ({ accessToken, path, method, answer }: Exchange): boolean | null => {
    if (answer.kind === 'no-answer') return null
    if (accessToken === null) return scope === 'token' ? false : tokens
    if (answer.status === 429 || answer.status === 401 || scope === null) return null
    if (scope === 'token' && accessToken !== firstToken) return false
    const each = [
      method === 'GET' ? polls : true,
      isSuccess(answer) ? true : failures,
      path.includes(serviceResources.orders.path) ? orders : true,
    ]
    return each.includes(false) ? false : each.includes(null) ? null : true
  }
  return exchanges.map((exchange) => {
    const { accessToken, method, path, answer } = exchange
    const isRecord = method === 'POST' && path.includes(serviceResources.data.path) && isSuccess(answer)
    const isOfFirst = scope !== 'token' || accessToken === firstToken
    return {
      fromMs: exchange.startedAtMs,
      toMs: endedAtMs(exchange),
      counts: isCounted(exchange),
      remaining: isRecord && isOfFirst ? rateRemainingOf(answer) : null,
    }
  })
}

/** The limits that explain what remained and what had been used, within the first window; null if no limit does. */
export function limitFromRemainingHeader(
  seen: readonly LimitObservation[],
  windowMs: number,
): { min: number; max: number } | null {
  const sinceMs = seen[0]?.fromMs ?? 0
  let [min, max] = [0, Number.POSITIVE_INFINITY]
  let [used, perhaps] = [0, 0]
  let last = Number.POSITIVE_INFINITY
  for (const { toMs, counts, remaining } of seen) {
    if (toMs >= sinceMs + windowMs) break
    if (counts === true) used++
    if (counts === null) perhaps++
    if (remaining === null) continue
    if (remaining > last) break
    last = remaining
    min = Math.max(min, remaining + used)
    max = Math.min(max, remaining + used + perhaps)
  }
  return min <= max && max < Number.POSITIVE_INFINITY ? { min, max } : null
}

export function judgeRateHeader(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: it is used if it is there'
  const answers = exchanges.filter(({ answer }) => answer.kind === 'response')
  const shares = Object.entries(Object.groupBy(answers, groupOf)).map(([name, all = []]) => {
    const having = all.filter(({ answer }) => rateRemainingOf(answer) !== null).length
    const share = having === 0 ? 'none' : having === all.length ? 'all' : 'some'
    return { name, share, size: all.length, text: `${name}: ${having} of ${all.length}` }
  })
  if (shares.length === 0) return unknownFinding('nothing was answered', { assumed })
  const why = shares.map(({ text }) => text).join(', ')
  const certainty = shares.every(({ name, size }) => size > 1 || name === 'tokens') ? 'sure' : 'likely'
  const shareOf = (name: string) => shares.find((each) => each.name === name)?.share
  const having = [
    ...shares.filter(({ share }) => share === 'all').map(({ name }) => name),
    ...shares.filter(({ share }) => share === 'some').map(({ name }) => `some ${name}`),
  ]
  const [success, refusal] = [shareOf('successes'), shareOf('refusals')]
  const isOnAll = refusal === 'all' && (success === 'all' || success === undefined)
  const rate_remaining = having.length === 0 ? 'none' : isOnAll ? 'all' : 'some'
  const contract: Finding['contract'] = refusal === undefined ? {} : { rate_remaining }
  if (having.length === 0)
    return createFinding(certainty, 'none', why, {
      assumed,
      contract,
      advice: ['keep other clients from using the same limit: the daemon notices them only at a 429'],
    })
  const what = shares.every(({ share }) => share === 'all') ? 'all' : having.join(', ')
  return createFinding(certainty, what, why, { assumed, contract })
}

function groupOf({ path, answer }: Exchange): string {
  if (path.endsWith('/oauth/token')) return 'tokens'
  if (answer.kind === 'response' && answer.status === 401) return 'unauthorized'
  return isSuccess(answer) ? 'successes' : 'refusals'
}
