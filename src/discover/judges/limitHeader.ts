import { serviceResources } from '../../resources.ts'
import { type Exchange, isSuccess, rateRemainingOf, transactionStatusIn } from '../exchange.ts'
import {
  type Finding,
  likelyFinding,
  type QuestionParts,
  type Sample,
  sureFinding,
  unknownFinding,
} from '../question.ts'
import { keyHeaders, requireRecordShape, submitTestRecord } from '../testRecord.ts'
import { orderSample, postOrder } from './orders.ts'
import { recordPollsSample } from './records.ts'

/**
 * Reads what the limit counts from X-RateLimit-Remaining on accepted records: how much less remains after requests of
 * one kind than before. A header that does not fall by one with each record is not trusted.
 */

type Kind = 'poll' | 'order' | 'refused'

interface RemainingHeader {
  /** By how much X-RateLimit-Remaining fell with each record; null if the header was missing. */
  falls: readonly (number | null)[]
  /** How much X-RateLimit-Remaining fell for two requests of each kind, without the share of a record. */
  counted: Partial<Record<Kind, number | null>>
}

const sentOfKind = 2

export const remainingHeaderSample: Sample<RemainingHeader> = {
  name: 'records, and other requests between them',
  async take(parts) {
    const first = await watchHeader(parts)
    // If a window ended since, it freed what had been used, so this is repeated.
    const isRisen = [...first.falls, ...Object.values(first.counted)].some((fall) => (fall ?? 0) < 0)
    return isRisen ? watchHeader(parts) : first
  },
}

async function watchHeader(parts: QuestionParts): Promise<RemainingHeader> {
  const mayOrder = parts.given.orderCustomer !== null && (await parts.sample(orderSample)).shape !== null
  const path = await findReadableTransactionPath(parts)
  const { key } = await requireRecordShape(parts)
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
  const counted: RemainingHeader['counted'] = {}
  if (whyHeaderIsNotTrusted({ falls }) !== null) return { falls, counted }

  const count = async (kind: Kind, send: () => Promise<unknown>) => {
    for (let i = 0; i < sentOfKind; i++) await send()
    const fell = await fall()
    counted[kind] = fell === null ? null : fell - 1
  }
  if (path !== null) await count('poll', () => parts.get(path))
  const refused = { method: 'POST', path: serviceResources.data.path, body: '{}', headers: keyHeaders(key) } as const
  await count('refused', () => parts.call(refused))
  if (mayOrder) await count('order', () => postOrder(parts))
  return { falls, counted }
}

/** The path of a transaction that the service shows; null if it shows none. */
export async function findReadableTransactionPath(parts: QuestionParts): Promise<string | null> {
  const polls = await parts.sample(recordPollsSample)
  const prefix = new URL(parts.config.service.baseUrl).pathname.replace(/\/+$/, '')
  const shown = polls.flat().findLast((each) => transactionStatusIn(each) !== null)
  return shown?.path.slice(prefix.length) ?? null
}

/** The reason why the header is not trusted; null if it is. */
function whyHeaderIsNotTrusted({ falls }: Pick<RemainingHeader, 'falls'>): string | null {
  if (falls.includes(null)) return 'X-RateLimit-Remaining is not on the answers to records'
  return falls.every((fall) => fall === 1)
    ? null
    : `X-RateLimit-Remaining is not trusted: records in a row made it fall by ${falls.join(', ')}`
}

export async function askIfKindCounts(parts: QuestionParts, kind: Kind): Promise<Finding> {
  const header = await parts.sample(remainingHeaderSample)
  const less = header.counted[kind]
  if (less === undefined) return unknownFinding(whyHeaderIsNotTrusted(header) ?? 'no such request could be made')
  const [yes, no] = kind === 'order' ? ['shared', 'apart'] : ['yes', 'no']
  const why = `${sentOfKind} such requests between two records lowered the remaining number by ${less}`
  if (less === sentOfKind) return likelyFinding(yes, why)
  if (less !== 0) return unknownFinding(why)
  const advice = ['the daemon takes a slot for each of them anyway, which keeps any limit']
  return likelyFinding(no, why, { differs: true, advice })
}

/** Judges all answers so far but those about tokens. */
export async function askRateHeader(parts: QuestionParts): Promise<Finding> {
  const answers = parts.exchanges().filter(isAboutRequest)
  const having = answers.filter(({ answer }) => rateRemainingOf(answer) !== null)
  const what = having.length === 0 ? 'none' : having.length === answers.length ? 'all' : 'some'
  const why = `${having.length} of ${answers.length} answers have it`
  const isOfBoth = new Set(answers.map(({ answer }) => isSuccess(answer))).size > 1
  return (isOfBoth ? sureFinding : likelyFinding)(what, why, {
    advice:
      what === 'none' ? ['keep other clients from using the same limit: the daemon notices them only at a 429'] : [],
    contract: what === 'some' ? {} : { rate_remaining: what },
  })
}

const isAboutRequest = ({ path, answer }: Exchange) =>
  answer.kind === 'response' && answer.status !== 401 && !path.endsWith('/oauth/token')
