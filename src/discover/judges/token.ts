import { randomUUID } from 'node:crypto'
import { serviceResources } from '../../resources.ts'
import { isServiceCode } from '../../service/errorCode.ts'
import {
  accessTokenIn,
  describeSeen,
  type Exchange,
  endedAtMs,
  fieldOf,
  jsonOf,
  type Response,
  type SeenAnswer,
  statusAndCode,
  whyNoAnswer,
} from '../exchange.ts'
import {
  certaintyOf,
  createFinding,
  type Finding,
  likelyFinding,
  showMs,
  sureFinding,
  unknownFinding,
} from '../finding.ts'
import { authorizedFirstCallSample, tokenSample } from '../firstCall.ts'
import { CannotAsk, NoAnswer, type QuestionParts, type Sample } from '../question.ts'

const unitsMs = { milliseconds: 1, seconds: 1_000, minutes: 60_000 }
type Unit = keyof typeof unitsMs
const units = Object.keys(unitsMs) as Unit[]

const expiresInOf = ({ answer }: Exchange) => Number(fieldOf(jsonOf(answer), 'expires_in'))

export async function askExpiresInUnit(parts: QuestionParts): Promise<Finding> {
  const { accessToken, exchange } = await parts.sample(tokenSample)
  const [expiresIn, byToken] = [expiresInOf(exchange), jwtLifetimeSeconds(accessToken)]
  return judgeTokenUnit(expiresIn, byToken, parts.config.tokenUnit)
}

/** Sure if the token itself agrees with expires_in, likely if the number makes sense in one unit only. */
function judgeTokenUnit(expiresIn: number, byToken: number | null, assumed: Unit): Finding {
  if (!(expiresIn > 0))
    return sureFinding('none', 'the answer has no expires_in that is a number', {
      assumed,
      differs: true,
      cannot:
        'each token is a breach of contract and is renewed after two and a half minutes. If it ends sooner, requests meet a 401 and are repeated with a new token',
    })
  const said = `expires_in is ${expiresIn}`
  const unitFound = (certainty: 'sure' | 'likely', unit: Unit, why: string) =>
    createFinding(certainty, unit, why, {
      assumed,
      differs: unit !== assumed,
      set: [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit, why }],
      contract: { expires_in: unit },
    })
  const secondsIn = (unit: Unit) => (expiresIn * unitsMs[unit]) / 1_000
  if (byToken !== null) {
    const jwt = `${said}, and the token itself, a JWT, lasts ${byToken} s`
    const unit = units.find((each) => Math.abs(secondsIn(each) - byToken) <= Math.max(2, byToken * 0.02))
    if (unit !== undefined) return unitFound('sure', unit, jwt)
    return unknownFinding(`${jwt}: that fits none of ${units.join(', ')}`, {
      assumed,
      cannot:
        'no value of TOKEN_EXPIRES_IN_UNIT fits: ask the operator of the service, and set TOKEN_REFRESH_SECONDS so that tokens are renewed in time',
    })
  }
  const plausible = units.filter((unit) => secondsIn(unit) >= 30 && secondsIn(unit) <= 86_400)
  const [only] = plausible
  if (only !== undefined && plausible.length === 1)
    return unitFound('likely', only, `${said}: in any other unit that is less than half a minute or more than a day`)
  const may = plausible.join(' or ') || 'none of the units'
  const why = `${said}, which may be ${may}, and the token does not say how long it lasts: --slow holds it to its end`
  return unknownFinding(why, { assumed })
}

/** The lifetime by RFC 7519, 4.1 (exp less iat), in seconds. Null if the token is not a JWT that has both. */
function jwtLifetimeSeconds(accessToken: string): number | null {
  const [, claims, signature] = accessToken.split('.')
  if (claims === undefined || signature === undefined) return null
  try {
    const { exp, iat } = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'))
    return typeof exp === 'number' && typeof iat === 'number' && exp > iat ? exp - iat : null
  } catch {
    return null
  }
}

const unknownIdPath = () => `${serviceResources.data.path}/${randomUUID()}`

interface TokenPair {
  former: string
  newer: string | null
  before: Exchange
  after: Exchange
  withNewer: Exchange | null
}

export const tokenPairsSample: Sample<readonly TokenPair[]> = {
  name: 'questions with a token before and after the next one came',
  requestsMax: 8,
  recordsMax: 0,
  samples: [authorizedFirstCallSample],
  async take(parts) {
    const pairs: TokenPair[] = []
    for (let i = 0; i < 2; i++) {
      const former = await parts.token()
      const look = (accessToken: string) => parts.call({ method: 'GET', path: unknownIdPath(), accessToken })
      const before = await look(former)
      const newer = accessTokenIn((await parts.askToken(parts.config.service.clientSecret)).answer)
      const after = await look(former)
      pairs.push({ former, newer, before, after, withNewer: newer === null ? null : await look(newer) })
    }
    return pairs
  },
}

export function judgeSecondToken(pairs: readonly TokenPair[]): Finding {
  const assumed = 'both are valid'
  const nameOrNone = (exchange: Exchange | null) => (exchange === null ? 'none' : statusAndCode(exchange.answer))
  const seen = pairs.map(({ before, after, withNewer }) => [before, after, withNewer].map(nameOrNone).join(', '))
  const why = `the first token, the first again after a second was given, the second: ${seen.join('; ')}`
  const isGood = (exchange: Exchange | null) => exchange?.answer.kind === 'response' && exchange.answer.status !== 401
  if (pairs.some(({ newer, before, withNewer }) => newer === null || !isGood(before) || !isGood(withNewer)))
    return unknownFinding(why, { assumed })
  if (pairs.every(({ former, newer }) => former === newer))
    return sureFinding('the same token', 'the issuer gave the same token again, twice', { assumed })
  if (pairs.every(({ after }) => isGood(after))) return sureFinding('both valid', why, { assumed })
  if (pairs.some(({ after }) => isGood(after))) return unknownFinding(why, { assumed })
  return sureFinding('ends the first', why, {
    assumed,
    differs: true,
    cannot:
      'each new token makes the token of another instance invalid. That instance’s call is refused, repeated, and counts twice against the limit: run one instance, and no `outboxd check` at the same time',
  })
}

interface Assumed {
  expiresInUnitMs: number
  tokenRefreshMs: number
}

/** The lifetime is between the last accepted use of a token and the first refused one, while no newer token came. */
export function judgeTokenLifetime(exchanges: readonly Exchange[], assumed: Assumed): Finding {
  const lives = exchanges.flatMap((grant) => lifeOf(grant, exchanges) ?? [])
  const [first] = lives
  if (first === undefined)
    return unknownFinding('no token ended during the questions. --slow holds one to its end', {
      assumed: 'as long as expires_in says',
    })
  const life = {
    expiresIn: first.expiresIn,
    goodForMs: Math.max(...lives.map(({ goodForMs }) => goodForMs)),
    overAfterMs: Math.min(...lives.map(({ overAfterMs }) => overAfterMs)),
  }
  if (life.goodForMs > life.overAfterMs)
    return unknownFinding(`${lives.length} tokens ended at different ages`, { assumed: 'as long as expires_in says' })
  const what = `${showMs(life.goodForMs)} to ${showMs(life.overAfterMs)}`
  const why = `${lives.length > 1 ? `${lives.length} tokens were` : 'a token was'} accepted at the first age, and refused at the second`
  const certainty = certaintyOf(lives.length)
  return judgeByUnit(life, assumed, certainty, what, why) ?? judgeEarlyEnd(life, assumed, certainty, what, why)
}

/** Ages, counted from the request for the token. */
interface HeldFor {
  expiresIn: number
  goodForMs: number
  overAfterMs: number
}

function lifeOf(grant: Exchange, exchanges: readonly Exchange[]): HeldFor | null {
  const token = accessTokenIn(grant.answer)
  if (token === null) return null
  const after = exchanges.slice(exchanges.indexOf(grant) + 1)
  // A newer token may have ended this one, so later uses do not show this one's age.
  const newer = after.findIndex((each) => accessTokenIn(each.answer) !== null)
  const uses = (newer === -1 ? after : after.slice(0, newer)).filter(
    (each) => each.accessToken === token && each.answer.kind === 'response' && !isRefusedAnyway(each, exchanges),
  )
  const refused = uses.findIndex(({ answer }) => answer.kind === 'response' && answer.status === 401)
  const [last, first] = [uses[refused - 1], uses[refused]]
  if (last === undefined || first === undefined) return null
  return {
    expiresIn: expiresInOf(grant),
    goodForMs: last.startedAtMs - grant.startedAtMs,
    overAfterMs: endedAtMs(first) - grant.startedAtMs,
  }
}

function isRefusedAnyway(use: Exchange, exchanges: readonly Exchange[]): boolean {
  const { answer } = use
  if (answer.kind === 'no-answer' || answer.status !== 401) return false
  if (isServiceCode(answer.code)) return true
  const again = exchanges
    .slice(exchanges.indexOf(use) + 1)
    .find((each) => each.path === use.path && each.body === use.body && each.accessToken !== use.accessToken)
  return again?.answer.kind === 'response' && again.answer.status === 401
}

/** If a service counts in whole seconds, a token may last longer by up to this time. */
const roundedMs = 1_500

/**
 * If a token ended when expires_in says, in the configured unit or in another, that settles the unit. Null otherwise.
 */
function judgeByUnit(
  { expiresIn, goodForMs, overAfterMs }: HeldFor,
  { expiresInUnitMs }: Assumed,
  certainty: 'sure' | 'likely',
  what: string,
  why: string,
): Finding | null {
  const fits = (ms: number, slackMs: number) => ms >= goodForMs - slackMs && ms <= overAfterMs
  const isAsAssumed = fits(expiresIn * expiresInUnitMs, roundedMs)
  const unit = units.find((each) =>
    isAsAssumed ? unitsMs[each] === expiresInUnitMs : fits(expiresIn * unitsMs[each], 0),
  )
  if (unit === undefined) return null
  const inUnit = `expires_in is ${expiresIn}; ${why}`
  return createFinding(certainty, what, inUnit, {
    assumed: `${showMs(expiresIn * expiresInUnitMs)}, as expires_in says`,
    differs: unitsMs[unit] !== expiresInUnitMs,
    set: [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit, why: inUnit }],
    contract: { expires_in: unit },
  })
}

function judgeEarlyEnd(
  { expiresIn, goodForMs }: HeldFor,
  { expiresInUnitMs, tokenRefreshMs }: Assumed,
  certainty: 'sure' | 'likely',
  what: string,
  why: string,
): Finding {
  const saidMs = expiresIn * expiresInUnitMs
  const assumed = Number.isNaN(saidMs) ? 'five minutes' : `${showMs(saidMs)}, as expires_in says`
  // The daemon renews a token after half its life or earlier.
  if (Math.max(saidMs - tokenRefreshMs, saidMs / 2) < goodForMs) return createFinding(certainty, what, why, { assumed })
  const wantedMs = Math.max(goodForMs * 0.8, saidMs / 2)
  if (wantedMs > goodForMs) {
    const cannot =
      'the daemon renews a token after half of expires_in or later, and this token ends before. A request that gets a 401 is repeated with a new token, and takes two slots'
    return createFinding(certainty, what, why, { assumed, differs: true, cannot })
  }
  const value = String(Math.ceil((saidMs - wantedMs) / 1000))
  const set = [{ variable: 'TOKEN_REFRESH_SECONDS', value, why: `tokens end ${what} after they were given` }]
  return createFinding(certainty, what, why, { assumed, differs: true, set })
}

const looksMax = 12
/** A token that lasts longer is not held to its end. */
const heldMaxMs = 75 * 60_000

/** Gets a separate token and tries it until it is refused: around each end that expires_in would mean in each unit. */
export const tokenHeldUntilRefusedSample: Sample<null> = {
  name: 'a token held to its end',
  requestsMax: 1 + looksMax,
  recordsMax: 0,
  samples: [authorizedFirstCallSample],
  needs: 'slow',
  async take(parts) {
    const grant = await parts.askToken(parts.config.service.clientSecret)
    const accessToken = accessTokenIn(grant.answer)
    if (accessToken === null) throw new CannotAsk('the issuer gave no token to hold')
    const bySelf = jwtLifetimeSeconds(accessToken)
    const endsMs = bySelf === null ? units.map((unit) => expiresInOf(grant) * unitsMs[unit]) : [bySelf * 1_000]
    for (const dueMs of looksBefore(endsMs.filter((ms) => ms >= 1_000 && ms <= heldMaxMs))) {
      await parts.waitMs(Math.max(0, grant.startedAtMs + dueMs - parts.nowMs()))
      const { answer } = await parts.call({ method: 'GET', path: unknownIdPath(), accessToken })
      if (answer.kind === 'response' && answer.status === 401) break
    }
    return null
  },
}

/** Before and right after each end, and on the way to the last one, so that an early end shows. */
function looksBefore(endsMs: readonly number[]): number[] {
  if (endsMs.length === 0) return []
  const around = endsMs.flatMap((ms) => [ms * 0.9, ms + 2_000])
  const onTheWay = [0.15, 0.3, 0.5, 0.7].map((share) => share * Math.max(...endsMs))
  return [...around, ...onTheWay].toSorted((a, b) => a - b).slice(0, looksMax)
}

export async function askBadToken(parts: QuestionParts): Promise<Finding> {
  const look = async () =>
    (await parts.call({ method: 'GET', path: unknownIdPath(), accessToken: `not-a-token-${parts.run}` })).answer
  const [first, second] = [await look(), await look()]
  if (first.kind === 'no-answer' || statusAndCode(first) !== statusAndCode(second))
    throw new NoAnswer(`two such calls were answered ${statusAndCode(first)} and ${statusAndCode(second)}`)
  if (first.status !== 401 && whyNoAnswer(first) !== null) throw new NoAnswer(describeSeen(first))
  return judgeBadToken(first)
}

function judgeBadToken(seen: Response): Finding {
  const more = { assumed: '401', contract: { bad_token: String(seen.status) } }
  const why = `${describeSeen(seen)}, twice`
  if (seen.status === 401) return sureFinding('401', why, more)
  const cannot =
    seen.status < 300
      ? 'the service accepts a token that its issuer did not give: it does not check tokens'
      : 'the daemon renews a token before its end, or after a 401: if the service ends a token sooner, requests fail until its time is up. Set TOKEN_REFRESH_SECONDS so that it is renewed earlier'
  return sureFinding(statusAndCode(seen), why, { ...more, differs: true, cannot })
}

/** Tries once only, because an issuer may lock a client out. */
export function judgeWrongSecret(seen: SeenAnswer): Finding {
  const assumed = '400 or 401, as RFC 6749 says'
  const unanswered = seen.kind === 'response' && seen.status === 401 ? null : whyNoAnswer(seen)
  if (seen.kind === 'no-answer' || unanswered !== null)
    return unknownFinding(unanswered ?? describeSeen(seen), { assumed })
  const { status } = seen
  const why = `${describeSeen(seen)}; one try`
  if (status >= 400 && status < 500)
    return likelyFinding(statusAndCode(seen), why, { assumed, differs: status !== 400 && status !== 401 })
  const cannot =
    status < 300
      ? 'the issuer gives a token for a wrong secret, so a wrong secret shows only at the first call'
      : 'the daemon takes this for an issuer in trouble (pause unreachable), and does not say that the secret is wrong'
  return likelyFinding(statusAndCode(seen), why, { assumed, differs: true, cannot })
}
