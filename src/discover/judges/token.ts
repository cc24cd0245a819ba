import { randomUUID } from 'node:crypto'
import { serviceResources } from '../../resources.ts'
import {
  accessTokenIn,
  describeAnswer,
  type Exchange,
  endedAtMs,
  fieldOf,
  formatMsOrSeconds,
  isSuccess,
  jsonOf,
  type ParsedAnswer,
  statusAndCodeText,
} from '../exchange.ts'
import {
  CannotAsk,
  type Finding,
  likelyFinding,
  type QuestionContext,
  QuestionsStopped,
  type Sample,
  sureFinding,
  unknownFinding,
} from '../question.ts'
import { findTokenSigns } from './refusals.ts'

/** Requests the token for all other questions (docs/reference/interface.md, 4.1). */
export const tokenSample: Sample<{ accessToken: string; exchange: Exchange }> = {
  name: 'a token',
  async take(parts) {
    const exchange = await parts.requestToken()
    const accessToken = accessTokenIn(exchange.answer)
    if (accessToken === null) throw new QuestionsStopped(`there is no token: ${explainNoToken(exchange.answer)}`)
    return { accessToken, exchange }
  },
}

function explainNoToken(seen: ParsedAnswer): string {
  if (seen.kind === 'no-answer') return seen.detail
  const said = `the issuer answered ${describeAnswer(seen)}`
  if (seen.status >= 500) return said
  if (isSuccess(seen) && seen.json !== undefined)
    return 'the issuer answered without an access_token that a Bearer header can carry'
  return `${said}: check SERVICE_AUTH_URL (redirects are not followed), SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list`
}

const unitsMs = { milliseconds: 1, seconds: 1_000, minutes: 60_000 }
type Unit = keyof typeof unitsMs
const units = Object.keys(unitsMs) as Unit[]

const expiresInOf = ({ answer }: Exchange) => Number(fieldOf(jsonOf(answer), 'expires_in'))

const unitMore = (unit: Unit, assumed: Unit, why: string) => ({
  differs: unit !== assumed,
  set: [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit, why }],
  contract: { expires_in: unit },
})

/** Finds the unit of expires_in: sure if the token is a JWT that agrees, likely if only one unit is plausible. */
export async function askExpiresInUnit(parts: QuestionContext): Promise<Finding> {
  const { accessToken, exchange } = await parts.sample(tokenSample)
  const expiresIn = expiresInOf(exchange)
  if (!(expiresIn > 0))
    return sureFinding('none', 'the answer has no expires_in that is a number', {
      differs: true,
      cannot:
        'each answer without expires_in counts as a breach of contract. The token is renewed after two and a half minutes. If it ends sooner, requests get a 401 and are repeated with a new token',
    })
  const { tokenUnit } = parts.config
  const said = `expires_in is ${expiresIn}`
  const secondsIn = (unit: Unit) => (expiresIn * unitsMs[unit]) / 1_000
  const byToken = jwtLifetimeSeconds(accessToken)
  if (byToken !== null) {
    const why = `${said}, and the token itself, a JWT, lasts ${byToken} s`
    const unit = units.find((each) => Math.abs(secondsIn(each) - byToken) <= Math.max(2, byToken * 0.02))
    if (unit !== undefined) return sureFinding(unit, why, unitMore(unit, tokenUnit, why))
    const cannot =
      'no value of TOKEN_EXPIRES_IN_UNIT fits: ask the operator of the service, and set TOKEN_REFRESH_SECONDS so that tokens are renewed in time'
    return unknownFinding(`${why}: no unit of ${units.join(', ')} fits both`, { cannot })
  }
  const [unit, other] = units.filter((each) => secondsIn(each) >= 30 && secondsIn(each) <= 86_400)
  if (unit === undefined || other !== undefined)
    return unknownFinding(
      `${said}, and the token does not say how long it lasts: with --slow, the question token-lifetime measures it`,
    )
  const why = `${said}: in any other unit that is less than half a minute or more than a day`
  return likelyFinding(unit, why, unitMore(unit, tokenUnit, why))
}

/** The lifetime by RFC 7519, 4.1 (exp minus iat), in seconds. Null if the token is not a JWT that has both. */
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

const callWith = (parts: QuestionContext, accessToken: string) =>
  parts.call({ method: 'GET', path: `${serviceResources.data.path}/${randomUUID()}`, accessToken })

export async function askWhetherSecondTokenEndsFirst(parts: QuestionContext): Promise<Finding> {
  const { isLetIn, isRefused } = await findTokenSigns(parts)
  const pairs = []
  for (let i = 0; i < 2; i++) {
    const former = await parts.sharedToken()
    const before = await callWith(parts, former)
    const newer = accessTokenIn((await parts.requestToken()).answer)
    if (newer === null) return unknownFinding('the issuer gave no second token')
    const after = await callWith(parts, former)
    pairs.push({ isSame: former === newer, before, after, withNewer: await callWith(parts, newer) })
  }
  const seen = pairs.map((pair) =>
    [pair.before, pair.after, pair.withNewer].map(({ answer }) => statusAndCodeText(answer)).join(', '),
  )
  const why = `answers to the first token, to the first again after a second was given, and to the second: ${seen.join('; ')}`
  if (!pairs.every(({ before, withNewer }) => isLetIn(before) && isLetIn(withNewer))) return unknownFinding(why)
  if (pairs.every(({ isSame }) => isSame))
    return sureFinding('the same token', 'the issuer gave the same token again, twice')
  const valid = pairs.filter(({ after }) => isLetIn(after)).length
  if (valid === pairs.length) return sureFinding('both valid', why)
  if (!pairs.every(({ after }) => isRefused(after))) return unknownFinding(why)
  const cannot =
    'each new token makes the token of another instance invalid. That instance’s call is refused, repeated, and counts twice against the limit: run one instance, and no `outboxd check` at the same time'
  return sureFinding('ends the first', why, { differs: true, cannot })
}

/** Ages are counted from the request for the token. */
interface HeldToken {
  expiresIn: number
  goodForMs: number
  overAfterMs: number
}

const looksMax = 12
const heldMaxMs = 75 * 60_000

/** Requests a token and tries it until it is refused, shortly before and after the end by each unit of expires_in. */
export async function askTokenLifetime(parts: QuestionContext): Promise<Finding> {
  if (!parts.given.slow) return unknownFinding('no token was used until it ended: give --slow')
  const { isLetIn, isRefused } = await findTokenSigns(parts)
  const grant = await parts.requestToken()
  const accessToken = accessTokenIn(grant.answer)
  if (accessToken === null) throw new CannotAsk('the issuer gave no token to hold')
  const expiresIn = expiresInOf(grant)
  const bySelf = jwtLifetimeSeconds(accessToken)
  const endsMs = bySelf === null ? units.map((unit) => expiresIn * unitsMs[unit]) : [bySelf * 1_000]
  let goodForMs: number | null = null
  for (const dueMs of looksBefore(endsMs.filter((ms) => ms >= 1_000 && ms <= heldMaxMs))) {
    await parts.waitMs(Math.max(0, grant.startedAtMs + dueMs - parts.nowMs()))
    const look = await callWith(parts, accessToken)
    if (isLetIn(look)) goodForMs = look.startedAtMs - grant.startedAtMs
    else if (isRefused(look) && goodForMs !== null) {
      const held = { expiresIn, goodForMs, overAfterMs: endedAtMs(look) - grant.startedAtMs }
      return judgeTokenLifetime(held, parts.config.service)
    }
  }
  return unknownFinding('the token did not end while it was tried, or was refused at once')
}

/** Just before and after each expected end, and earlier, to notice an early end. */
function looksBefore(endsMs: readonly number[]): number[] {
  if (endsMs.length === 0) return []
  const around = endsMs.flatMap((ms) => [ms * 0.9, ms + 2_000])
  const onTheWay = [0.15, 0.3, 0.5, 0.7].map((share) => share * Math.max(...endsMs))
  return [...around, ...onTheWay].toSorted((a, b) => a - b).slice(0, looksMax)
}

/** The lifetime that the daemon assumes without a usable expires_in (src/service/tokens.ts). */
const assumedLifetimeMs = 300_000
/** A service that counts whole seconds may accept a token this long after its end. */
const roundingSlackMs = 1_500

/** Reads expires_in in each unit: the unit that fits the token's end is the right one. */
export function judgeTokenLifetime(
  { expiresIn, goodForMs, overAfterMs }: HeldToken,
  { expiresInUnitMs, tokenRefreshMs }: { expiresInUnitMs: number; tokenRefreshMs: number },
): Finding {
  const what = `${formatMsOrSeconds(goodForMs)} to ${formatMsOrSeconds(overAfterMs)}`
  const said = expiresIn > 0 ? `expires_in is ${expiresIn}` : 'the answer has no expires_in that is a number'
  const why = `${said}; a token was accepted at the first age above, and refused at the second`
  const fits = (ms: number, slackMs: number) => ms >= goodForMs - slackMs && ms <= overAfterMs
  const saidMs = expiresIn > 0 ? expiresIn * expiresInUnitMs : assumedLifetimeMs
  const assumed = units.find((unit) => unitsMs[unit] === expiresInUnitMs) ?? 'seconds'
  const unit = fits(saidMs, roundingSlackMs) ? assumed : units.find((each) => fits(expiresIn * unitsMs[each], 0))
  if (unit !== undefined) return likelyFinding(what, why, unitMore(unit, assumed, why))
  // The daemon renews a token after half of the stated lifetime or later. The token must last until then.
  if (Math.max(saidMs - tokenRefreshMs, saidMs / 2) < goodForMs) return likelyFinding(what, why)
  const wantedMs = Math.max(goodForMs * 0.8, saidMs / 2)
  if (wantedMs > goodForMs) {
    const cannot =
      'the daemon renews a token after half of expires_in or later, and this token ends before. A request that gets a 401 is repeated with a new token, and counts twice'
    return likelyFinding(what, why, { differs: true, cannot })
  }
  const value = String(Math.ceil((saidMs - wantedMs) / 1000))
  const set = [{ variable: 'TOKEN_REFRESH_SECONDS', value, why: `tokens end ${what} after they were given` }]
  return likelyFinding(what, why, { differs: true, set })
}
