import { serviceResources } from '../../resources.ts'
import { type Exchange, isSuccess, rateLimitRemainingOf } from '../exchange.ts'
import { type Finding, likelyFinding, type QuestionContext, sureFinding, unknownFinding } from '../question.ts'
import { findAcceptedRecordShape, idempotencyKeyHeaders, submitTestRecord } from '../testRecord.ts'

const refusedBetween = 2

/**
 * Compares X-RateLimit-Remaining of accepted records before and after two refused requests. Trusts the header only if
 * the number falls by one with each record.
 */
export async function askWhetherRefusedRequestsUseLimit(parts: QuestionContext): Promise<Finding> {
  let seen = await watchHeader(parts)
  // A number that rose shows that a window ended: compare once more.
  if ([...seen.falls, seen.fallByRefused].some((fall) => (fall ?? 0) < 0)) seen = await watchHeader(parts)
  const { falls, fallByRefused } = seen
  if (falls.includes(null)) return unknownFinding('X-RateLimit-Remaining is not on the answers to records')
  if (fallByRefused === null)
    return unknownFinding(`X-RateLimit-Remaining is not trusted: records made it fall by ${falls.join(', ')}`)
  const why = `${refusedBetween} refused requests between two records lowered the remaining number by ${fallByRefused}`
  if (fallByRefused === refusedBetween) return likelyFinding('yes', why)
  if (fallByRefused !== 0) return unknownFinding(why)
  const advice = ['the daemon counts each refused request anyway, which keeps any limit']
  return likelyFinding('no', why, { differs: true, advice })
}

interface HeaderSeen {
  /** Null if the header was missing. */
  falls: (number | null)[]
  /** Null if the header is missing or not trusted. */
  fallByRefused: number | null
}

async function watchHeader(parts: QuestionContext): Promise<HeaderSeen> {
  const { key } = await findAcceptedRecordShape(parts)
  const remainingAfterRecord = async () => rateLimitRemainingOf((await submitTestRecord(parts)).answer)
  let last = await remainingAfterRecord()
  const fall = async () => {
    const before = last
    last = await remainingAfterRecord()
    return before === null || last === null ? null : before - last
  }
  const falls = [await fall(), await fall()]
  await parts.waitMs(1_500) // During this wait, a limit that refills gradually gives requests back.
  falls.push(await fall())
  if (!falls.every((each) => each === 1)) return { falls, fallByRefused: null }
  for (let i = 0; i < refusedBetween; i++)
    await parts.call({
      method: 'POST',
      path: serviceResources.data.path,
      body: '{}',
      headers: idempotencyKeyHeaders(key),
    })
  const fell = await fall()
  return { falls, fallByRefused: fell === null ? null : fell - 1 }
}

/** Leaves out 401 and the issuer's answers, which are about tokens. */
export async function askWhichAnswersHaveRateHeader(parts: QuestionContext): Promise<Finding> {
  const answers = parts.exchanges.filter(isAboutRequest)
  const having = answers.filter(({ answer }) => rateLimitRemainingOf(answer) !== null)
  const allOrSome = having.length === answers.length ? 'all' : 'some'
  const what = having.length === 0 ? 'none' : allOrSome
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
