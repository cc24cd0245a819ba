import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { isServiceCode } from '../../service/errorCode.ts'
import {
  accessTokenIn,
  type Exchange,
  endedAtMs,
  fieldOf,
  jsonOf,
  lineOf,
  nameOf,
  type Response,
  type Seen,
  whyNoAnswer,
} from '../exchange.ts'
import { type Finding, found, likely, showMs, sure, unknown } from '../finding.ts'
import { addressSample, tokenSample } from '../firstCall.ts'
import { CannotAsk, NoAnswer, type Parts, type Sample } from '../question.ts'

const unitSeconds = { milliseconds: 0.001, seconds: 1, minutes: 60 }
type Unit = keyof typeof unitSeconds
const units = Object.keys(unitSeconds) as Unit[]

export async function askTokenUnit(parts: Parts): Promise<Finding> {
  const { accessToken, exchange } = await parts.sample(tokenSample)
  const expiresIn = Number(fieldOf(jsonOf(exchange.answer), 'expires_in'))
  return judgeTokenUnit({ expiresIn, byToken: jwtLifetimeSeconds(accessToken), assumed: parts.config.tokenUnit })
}

interface TokenLife {
  /** NaN if there is none that can be read. */
  expiresIn: number
  /** Seconds that the token itself says; null if it is not a JWT that does. */
  byToken: number | null
  assumed: Unit
}

/** Sure if the token itself agrees with expires_in; likely if the number makes sense in one unit only. Pure. */
export function judgeTokenUnit({ expiresIn, byToken, assumed }: TokenLife): Finding {
  if (!(expiresIn > 0))
    return sure('none', 'the answer has no expires_in that is a number', {
      assumed,
      differs: true,
      cannot:
        'each token counts as a breach of contract and is renewed after two and a half minutes. If it ends sooner, requests meet a 401 and are repeated with a new token',
    })
  const said = `expires_in is ${expiresIn}`
  if (byToken !== null) {
    const jwt = `${said}, and the token itself, a JWT, lasts ${byToken} s`
    const unit = units.find((each) => Math.abs(expiresIn * unitSeconds[each] - byToken) <= Math.max(2, byToken * 0.02))
    if (unit !== undefined) return unitFound('sure', unit, jwt, assumed)
    return unknown(`${jwt}: that fits none of ${units.join(', ')}`, {
      assumed,
      cannot:
        'no value of TOKEN_EXPIRES_IN_UNIT fits: ask the operator of the service, and set TOKEN_REFRESH_SECONDS so that tokens are renewed in time',
    })
  }
  const plausible = units.filter((unit) => {
    const seconds = expiresIn * unitSeconds[unit]
    return seconds >= 30 && seconds <= 86_400
  })
  const [only] = plausible
  if (only !== undefined && plausible.length === 1)
    return unitFound(
      'likely',
      only,
      `${said}: in any other unit that is less than half a minute or more than a day`,
      assumed,
    )
  return unknown(
    `${said}, which may be ${plausible.join(' or ') || 'none of the units'}, and the token does not say how long it lasts: --slow holds it to its end`,
    { assumed },
  )
}

function unitFound(certainty: 'sure' | 'likely', unit: Unit, why: string, assumed: Unit): Finding {
  const set = [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit, why }]
  return found(certainty, unit, why, { assumed, differs: unit !== assumed, set, contract: { expires_in: unit } })
}

/** RFC 7519, 4.1: exp less iat, in seconds; null if the token is not a JWT, or has not both. */
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

const unknownIdPath = () => `${resources.data.path}/${randomUUID()}`

/** Questions with each of two tokens, before and after the second came; and the same with a third. Nothing is renewed. */
interface TokenPair {
  former: string
  newer: string | null
  /** The former token before the newer one came, and after; then the newer one. */
  before: Exchange
  after: Exchange
  withNewer: Exchange | null
}

export const tokenPairsSample: Sample<readonly TokenPair[]> = {
  name: 'questions with a token before and after the next one came',
  requestsMax: 8,
  recordsMax: 0,
  samples: [addressSample],
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

/** Pure. */
export function judgeSecondToken(pairs: readonly TokenPair[]): Finding {
  const assumed = 'both are valid'
  const why = pairs
    .map(({ before, after, withNewer }) =>
      [before, after, withNewer].map((each) => (each === null ? 'none' : nameOf(each.answer))).join(', '),
    )
    .join('; ')
  const said = `the first token, the first again after a second was given, the second: ${why}`
  const isGood = (exchange: Exchange | null) => exchange?.answer.kind === 'response' && exchange.answer.status !== 401
  if (pairs.some(({ newer, before, withNewer }) => newer === null || !isGood(before) || !isGood(withNewer)))
    return unknown(said, { assumed })
  if (pairs.every(({ former, newer }) => former === newer))
    return sure('the same token', 'the issuer gave the same token again, twice', { assumed })
  if (pairs.every(({ after }) => isGood(after))) return sure('both valid', said, { assumed })
  if (!pairs.every(({ after }) => !isGood(after))) return unknown(said, { assumed })
  return sure('ends the first', said, {
    assumed,
    differs: true,
    cannot:
      'run one instance, and no outboxd check beside it: each new token ends that of the others, each such call is repeated with a new one and pays twice, and little gets through',
  })
}

/** As it is configured. */
interface Assumed {
  expiresInUnitMs: number
  tokenRefreshMs: number
}

export async function askTokenLifetime(parts: Parts): Promise<Finding> {
  return judgeTokenLifetime(parts.exchanges(), parts.config.service)
}

/** Between the last time that a token was taken and the first that it was refused, while no newer one came. Pure. */
export function judgeTokenLifetime(exchanges: readonly Exchange[], assumed: Assumed): Finding {
  const lives = exchanges.flatMap((grant) => lifeOf(grant, exchanges) ?? [])
  const [life] = lives
  if (life === undefined)
    return unknown('no token ended while this asked: --slow holds one to its end', {
      assumed: 'as long as expires_in says',
    })
  const narrow = {
    ...life,
    goodForMs: Math.max(...lives.map(({ goodForMs }) => goodForMs)),
    overAfterMs: Math.min(...lives.map(({ overAfterMs }) => overAfterMs)),
  }
  if (narrow.goodForMs > narrow.overAfterMs)
    return unknown(`${lives.length} tokens ended at different ages`, { assumed: 'as long as expires_in says' })
  return byUnit(narrow, lives.length, assumed.expiresInUnitMs) ?? ended(narrow, lives.length, assumed)
}

/** From when it was asked for, in milliseconds. */
interface HeldFor {
  expiresIn: number
  goodForMs: number
  overAfterMs: number
}

function lifeOf(grant: Exchange, exchanges: readonly Exchange[]): HeldFor | null {
  const token = accessTokenIn(grant.answer)
  if (token === null) return null
  const after = exchanges.slice(exchanges.indexOf(grant) + 1)
  // A newer token may have ended this one: what comes after it says nothing of this one's age.
  const newer = after.findIndex((each) => accessTokenIn(each.answer) !== null)
  const uses = (newer === -1 ? after : after.slice(0, newer)).filter(
    (each) => each.accessToken === token && each.answer.kind === 'response' && !isRefusedAnyway(each, exchanges),
  )
  const refused = uses.findIndex(({ answer }) => answer.kind === 'response' && answer.status === 401)
  const last = uses[refused - 1]
  const first = uses[refused]
  if (last === undefined || first === undefined) return null
  return {
    expiresIn: Number(fieldOf(jsonOf(grant.answer), 'expires_in')),
    goodForMs: last.startedAtMs - grant.startedAtMs,
    overAfterMs: endedAtMs(first) - grant.startedAtMs,
  }
}

/** A 401 that is not about the token's age: it has a code of the service, or the next token gets it, too. */
function isRefusedAnyway(use: Exchange, exchanges: readonly Exchange[]): boolean {
  const { answer } = use
  if (answer.kind === 'no-answer' || answer.status !== 401) return false
  if (isServiceCode(answer.code)) return true
  const again = exchanges
    .slice(exchanges.indexOf(use) + 1)
    .find((each) => each.path === use.path && each.body === use.body && each.accessToken !== use.accessToken)
  return again?.answer.kind === 'response' && again.answer.status === 401
}

const unitsMs = { milliseconds: 1, seconds: 1_000, minutes: 60_000 }
/** A token that a service counts in whole seconds lasts this much longer at most. */
const roundedMs = 1_500

/** It ended when expires_in says, in the configured unit or in another: that settles the unit. Null if in none. */
function byUnit(life: HeldFor, seen: number, assumedMs: number): Finding | null {
  const { expiresIn, goodForMs, overAfterMs } = life
  const fits = (ms: number, slackMs: number) => ms >= goodForMs - slackMs && ms <= overAfterMs
  const isAsAssumed = fits(expiresIn * assumedMs, roundedMs)
  const unit = Object.entries(unitsMs).find(([, unitMs]) =>
    isAsAssumed ? unitMs === assumedMs : fits(expiresIn * unitMs, 0),
  )
  if (unit === undefined) return null
  const why = `a token with expires_in ${expiresIn} was taken after ${showMs(goodForMs)}, and refused after ${showMs(overAfterMs)}`
  return found(seen > 1 ? 'sure' : 'likely', `${showMs(goodForMs)} to ${showMs(overAfterMs)}`, why, {
    assumed: `${showMs(expiresIn * assumedMs)}, as expires_in says`,
    differs: unit[1] !== assumedMs,
    set: [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit[0], why }],
    contract: { expires_in: unit[0] },
  })
}

function ended(life: HeldFor, seen: number, { expiresInUnitMs, tokenRefreshMs }: Assumed): Finding {
  const { goodForMs, overAfterMs } = life
  const saidMs = life.expiresIn * expiresInUnitMs
  const what = `${showMs(goodForMs)} to ${showMs(overAfterMs)}`
  const assumed = Number.isNaN(saidMs) ? 'five minutes' : `${showMs(saidMs)}, as expires_in says`
  const why = `${seen > 1 ? `${seen} tokens were` : 'a token was'} taken at the first age, and refused at the second`
  const certainty = seen > 1 ? 'sure' : 'likely'
  // The daemon renews a token at half its life if that comes first, and then it is early enough all the same.
  if (Math.max(saidMs - tokenRefreshMs, saidMs / 2) < goodForMs) return found(certainty, what, why, { assumed })
  const wantedMs = Math.max(goodForMs * 0.8, saidMs / 2)
  const isHelped = wantedMs <= goodForMs
  const value = String(Math.ceil((saidMs - wantedMs) / 1000))
  return found(certainty, what, why, {
    assumed,
    differs: true,
    set: isHelped
      ? [{ variable: 'TOKEN_REFRESH_SECONDS', value, why: `tokens end ${what} after they were given` }]
      : [],
    cannot: isHelped
      ? null
      : 'the daemon renews a token at half of what expires_in says at the earliest, and then it is over: the request that meets it is repeated with a new one, and pays twice',
  })
}

const looksMax = 12
/** A longer wait is not worth while. */
const heldMaxMs = 75 * 60_000

/** A token of its own, tried until it is refused: at the end that it would have in each unit, and before. */
export const heldTokenSample: Sample<null> = {
  name: 'a token held to its end',
  requestsMax: 1 + looksMax,
  recordsMax: 0,
  samples: [addressSample],
  needs: 'slow',
  async take(parts) {
    const grant = await parts.askToken(parts.config.service.clientSecret)
    const accessToken = accessTokenIn(grant.answer)
    if (accessToken === null) throw new CannotAsk('the issuer gave no token to hold')
    const expiresIn = Number(fieldOf(jsonOf(grant.answer), 'expires_in'))
    const bySelf = jwtLifetimeSeconds(accessToken)
    const endsMs = (
      bySelf === null ? Object.values(unitsMs).map((unitMs) => expiresIn * unitMs) : [bySelf * 1_000]
    ).filter((ms) => ms >= 1_000 && ms <= heldMaxMs)
    for (const dueMs of endsMs.length === 0 ? [] : looksBefore(endsMs)) {
      await parts.waitMs(Math.max(0, grant.startedAtMs + dueMs - parts.nowMs()))
      const { answer } = await parts.call({ method: 'GET', path: unknownIdPath(), accessToken })
      if (answer.kind === 'response' && answer.status === 401) break
    }
    return null
  },
}

/** Before each end and right after it, and on the way to the last, so that an early end is seen to be one. Pure. */
function looksBefore(endsMs: readonly number[]): number[] {
  const last = Math.max(...endsMs)
  const around = endsMs.flatMap((ms) => [ms * 0.9, ms + 2_000])
  const onTheWay = [0.15, 0.3, 0.5, 0.7].map((share) => share * last)
  return [...around, ...onTheWay].toSorted((a, b) => a - b).slice(0, looksMax)
}

export async function askBadToken(parts: Parts): Promise<Finding> {
  const look = () => parts.call({ method: 'GET', path: unknownIdPath(), accessToken: `not-a-token-${parts.run}` })
  const answers = [(await look()).answer, (await look()).answer]
  const [seen] = answers.filter((answer) => answer.kind === 'response')
  const why = answers.find(
    (answer) => answer.kind === 'no-answer' || (answer.status !== 401 && whyNoAnswer(answer) !== null),
  )
  if (seen === undefined || why !== undefined) throw new NoAnswer(lineOf(why ?? (answers[0] as Seen)))
  if (new Set(answers.map(nameOf)).size > 1)
    throw new NoAnswer(`two such calls were answered ${answers.map(nameOf).join(', ')}`)
  return judgeBadToken(seen)
}

/** The daemon renews its token at a 401. Pure. */
export function judgeBadToken(seen: Response): Finding {
  const assumed = '401'
  const contract = { bad_token: String(seen.status) }
  if (seen.status === 401) return sure('401', `${lineOf(seen)}, twice`, { assumed, contract })
  return sure(nameOf(seen), `${lineOf(seen)}, twice`, {
    assumed,
    differs: true,
    contract,
    cannot:
      seen.status < 300
        ? 'the service takes a token that nobody gave: it does not check tokens'
        : 'the daemon renews a token before its end, or after a 401: a token that the service ends sooner is used until its time is up, and requests fail meanwhile. Set TOKEN_REFRESH_SECONDS so that it is renewed earlier',
  })
}

/** One try only, because an issuer may lock a client out. Any refusal of the issuer counts as one of the credentials. Pure. */
export function judgeWrongSecret(seen: Seen): Finding {
  const assumed = '400 or 401, as RFC 6749 says'
  const unanswered = seen.kind === 'response' && seen.status === 401 ? null : whyNoAnswer(seen)
  if (seen.kind === 'no-answer' || unanswered !== null) return unknown(unanswered ?? lineOf(seen), { assumed })
  const { status } = seen
  if (status >= 400 && status < 500)
    return likely(nameOf(seen), `${lineOf(seen)}; one try`, { assumed, differs: status !== 400 && status !== 401 })
  return likely(nameOf(seen), `${lineOf(seen)}; one try`, {
    assumed,
    differs: true,
    cannot:
      status < 300
        ? 'the issuer gives a token for a wrong secret: that a secret is wrong shows only at the first call'
        : 'the daemon takes that for an issuer in trouble (pause unreachable): a wrong secret is not called one',
  })
}
