import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { isServiceCode } from '../../service/errorCode.ts'
import {
  type Exchange,
  endedAtMs,
  fieldOf,
  isRefusal,
  isSuccess,
  jsonOf,
  lineOf,
  nameOf,
  type Response,
  type Seen,
  whyNoAnswer,
} from '../exchange.ts'
import { type Finding, likely, notAsked, showMs, sure, unknown } from '../finding.ts'
import type { Parts } from '../question.ts'
import { accessTokenIn, jwtLifetimeSeconds, type Tokens, tokenSample, tokensSample } from '../samples/calls.ts'

export async function askTokenUnit(parts: Parts): Promise<Finding> {
  const { accessToken, exchange } = await parts.sample(tokenSample)
  const { answer } = exchange
  const expiresIn = answer.kind === 'response' ? Number(fieldOf(answer.json, 'expires_in')) : Number.NaN
  return judgeTokenUnit({
    expiresIn,
    jwtLifetimeSeconds: jwtLifetimeSeconds(accessToken),
    assumed: parts.config.tokenUnit,
  })
}

const unitSeconds = { milliseconds: 0.001, seconds: 1, minutes: 60 }
type Unit = keyof typeof unitSeconds

interface TokenLife {
  /** NaN where there is none that can be read. */
  expiresIn: number
  /** By the token itself; null where it is no JWT that says so. */
  jwtLifetimeSeconds: number | null
  assumed: Unit
}

/** A token that says itself how long it lasts settles it; else only a number that makes sense in one unit alone. Pure. */
export function judgeTokenUnit({ expiresIn, jwtLifetimeSeconds: byToken, assumed }: TokenLife): Finding {
  if (!(expiresIn > 0))
    return sure('none', 'the answer has no expires_in that is a number', {
      assumed,
      differs: true,
      cannot:
        'each token counts as a breach of contract and is renewed after two and a half minutes, as if it lasted five: if it ends sooner, requests meet a 401 and are repeated with a new one',
    })
  const said = `expires_in is ${expiresIn}`
  if (byToken !== null) {
    const unit = units.find((each) => Math.abs(expiresIn * unitSeconds[each] - byToken) <= Math.max(2, byToken * 0.02))
    if (unit !== undefined)
      return unitFound('sure', unit, `${said}, and the token itself, a JWT, lasts ${byToken} s`, assumed)
    return unknown(`${said}, and the token itself, a JWT, lasts ${byToken} s: that is none of ${units.join(', ')}`, {
      assumed,
      cannot: `no value of TOKEN_EXPIRES_IN_UNIT fits: ask the operator of the service, and set TOKEN_REFRESH_SECONDS so that tokens are renewed in time`,
    })
  }
  const plausible = units.filter((unit) => {
    const seconds = expiresIn * unitSeconds[unit]
    return seconds >= 30 && seconds <= 7 * 86_400
  })
  const [only] = plausible
  if (only !== undefined && plausible.length === 1)
    return unitFound(
      'likely',
      only,
      `${said}: in any other unit that is less than half a minute or more than a week`,
      assumed,
    )
  return unknown(
    `${said}, which may be ${plausible.join(' or ') || 'none of the units'}, and the token does not say how long it lasts: --slow holds it to its end`,
    { assumed },
  )
}

const units = Object.keys(unitSeconds) as Unit[]

function unitFound(certainty: 'sure' | 'likely', unit: Unit, why: string, assumed: Unit): Finding {
  const found = certainty === 'sure' ? sure : likely
  const set = [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit, why }]
  return found(unit, why, { assumed, differs: unit !== assumed, set, contract: { expires_in: unit } })
}

export async function askTokenFields(parts: Parts): Promise<Finding> {
  const { exchange } = await parts.sample(tokenSample)
  const json = exchange.answer.kind === 'response' ? exchange.answer.json : null
  const more = Object.keys(Object(json)).filter((name) => !['access_token', 'token_type', 'expires_in'].includes(name))
  return more.length === 0
    ? sure('none', 'it has the three fields of the interface')
    : sure(more.join(', '), 'it has these beside the three of the interface; the daemon ignores them')
}

/** As it is configured. */
interface Assumed {
  expiresInUnitMs: number
  tokenRefreshMs: number
}

/** When a token was last taken, and first refused: it ended in between. Pure. */
export function judgeTokenHeld(exchanges: readonly Exchange[], { expiresInUnitMs, tokenRefreshMs }: Assumed): Finding {
  const grants = exchanges.filter(({ answer }) => accessTokenIn(answer) !== null)
  for (const grant of grants) {
    const life = lifeOf(grant, exchanges)
    if (life === null) continue
    const expiresIn = Number(fieldOf(jsonOf(grant.answer), 'expires_in'))
    return byUnit(life, expiresIn, expiresInUnitMs) ?? ended(life, expiresIn * expiresInUnitMs, tokenRefreshMs)
  }
  return notAsked('no token ended while this asked', { assumed: 'as long as expires_in says' })
}

/** From when it was asked for, in milliseconds. */
interface HeldFor {
  goodForMs: number
  overAfterMs: number
}

function lifeOf(grant: Exchange, exchanges: readonly Exchange[]): HeldFor | null {
  const token = accessTokenIn(grant.answer)
  const uses = exchanges.filter(
    (each) => each.accessToken === token && each.answer.kind === 'response' && !isRefusedAnyway(each, exchanges),
  )
  const refused = uses.findIndex(({ answer }) => answer.kind === 'response' && answer.status === 401)
  const last = uses[refused - 1]
  const first = uses[refused]
  if (last === undefined || first === undefined) return null
  return { goodForMs: last.startedAtMs - grant.startedAtMs, overAfterMs: endedAtMs(first) - grant.startedAtMs }
}

/** A 401 that is none to the token: it has a code of the service, or comes to the next token, too. */
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

/** A token that a service counts in whole seconds lasts so much longer at most. */
const roundedMs = 1_500

/** It ended when expires_in has it end, in the configured unit or in another: that settles the unit. Null where in none. */
function byUnit(life: HeldFor, expiresIn: number, assumedMs: number): Finding | null {
  const fits = (ms: number, slackMs: number) => ms >= life.goodForMs - slackMs && ms <= life.overAfterMs
  const isAsAssumed = fits(expiresIn * assumedMs, roundedMs)
  const found = Object.entries(unitsMs).find(([, unitMs]) =>
    isAsAssumed ? unitMs === assumedMs : fits(expiresIn * unitMs, 0),
  )
  if (found === undefined) return null
  const [unit, unitMs] = found
  const lasted = `${showMs(life.goodForMs)} to ${showMs(life.overAfterMs)}`
  const why = `a token with expires_in ${expiresIn} was taken after ${showMs(life.goodForMs)}, and refused after ${showMs(life.overAfterMs)}`
  return sure(lasted, why, {
    assumed: `${showMs(expiresIn * assumedMs)}, as expires_in says`,
    differs: unitMs !== assumedMs,
    set: [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit, why }],
    contract: { expires_in: unit },
  })
}

function ended({ goodForMs, overAfterMs }: HeldFor, saidMs: number, refreshMs: number): Finding {
  const found = `${showMs(goodForMs)} to ${showMs(overAfterMs)}`
  const assumed = Number.isNaN(saidMs) ? 'five minutes' : `${showMs(saidMs)}, as expires_in says`
  const why = 'a token was taken then, and refused after that'
  // Renewed at half of its life where that comes first: then it is early enough all the same.
  const renewedMs = Math.max(saidMs - refreshMs, saidMs / 2)
  if (renewedMs < goodForMs) return sure(found, why, { assumed })
  const wantedMs = Math.max(goodForMs * 0.8, saidMs / 2)
  const isHelped = wantedMs <= goodForMs
  const seconds = Math.ceil((saidMs - wantedMs) / 1000)
  return sure(found, why, {
    assumed,
    differs: true,
    set: isHelped
      ? [
          {
            variable: 'TOKEN_REFRESH_SECONDS',
            value: String(seconds),
            why: `tokens end ${found} after they were given`,
          },
        ]
      : [],
    cannot: isHelped
      ? null
      : 'a token is over before the daemon renews it, which is at half of what expires_in says at the earliest: the request that meets it is repeated with a new one, and pays twice',
  })
}

export async function askBadToken(parts: Parts): Promise<Finding> {
  const path = `${resources.data.path}/${randomUUID()}`
  return judgeBadToken((await parts.get(path, { accessToken: `not-a-token-${parts.run}` })).answer)
}

/** A 401 is what the daemon renews its token at. Pure. */
export function judgeBadToken(seen: Response): Finding {
  const assumed = '401'
  const challenge = seen.headers['www-authenticate']
  const why = `${lineOf(seen)}; ${challenge === undefined ? 'without WWW-Authenticate' : `WWW-Authenticate: ${challenge}`}`
  const contract = { bad_token: String(seen.status) }
  if (seen.status === 401) return sure('401', why, { assumed, contract })
  return sure(nameOf(seen), why, {
    assumed,
    differs: true,
    contract,
    cannot:
      seen.status < 300
        ? 'the service takes a token that nobody gave: it does not check them'
        : 'the daemon renews a token before its end, or after a 401: one that the service ends sooner is used until its time is up, and requests fail meanwhile. Set TOKEN_REFRESH_SECONDS so that it is renewed earlier',
  })
}

/** The daemon takes any refusal of the issuer for one of its credentials. Pure. */
export function judgeWrongSecret(seen: Seen): Finding {
  const assumed = '400 or 401, as RFC 6749 says'
  if (seen.kind === 'no-answer') return unknown(lineOf(seen), { assumed })
  const { status } = seen
  const unanswered = status === 401 ? null : whyNoAnswer(seen)
  if (unanswered !== null) return unknown(unanswered, { assumed })
  if (status >= 400 && status < 500)
    return sure(nameOf(seen), lineOf(seen), { assumed, differs: status !== 400 && status !== 401 })
  return sure(nameOf(seen), lineOf(seen), {
    assumed,
    differs: true,
    cannot:
      status < 300
        ? 'the issuer gives a token for a wrong secret: that a secret is wrong shows itself only at the first call'
        : 'the daemon takes that for an issuer in trouble (pause unreachable): a wrong secret will not be called one',
  })
}

export async function askSecondToken(parts: Parts): Promise<Finding> {
  const { accessToken } = await parts.sample(tokenSample)
  return judgeSecondToken(await parts.sample(tokensSample), accessToken)
}

/** Pure. */
export function judgeSecondToken({ renewal, first }: Tokens, accessToken: string): Finding {
  const assumed = 'both are valid'
  const other = accessTokenIn(renewal.answer)
  if (other === null) return unknown(`the issuer gave no second one: ${lineOf(renewal.answer)}`, { assumed })
  if (other === accessToken) return sure('the same token', 'the issuer gave the same one again', { assumed })
  if (isSuccess(first.answer) || isRefusal(first.answer))
    return sure('both valid', 'the first was taken after the second had come', { assumed })
  if (first.answer.kind === 'response' && first.answer.status === 401)
    return sure('ends the first', `the first was answered ${lineOf(first.answer)} once there was a second`, {
      assumed,
      differs: true,
      cannot:
        'several instances, or outboxd check beside a daemon, end each other’s tokens: each such call is repeated with a new one, and pays twice. Run one instance',
    })
  return unknown(lineOf(first.answer), { assumed })
}
