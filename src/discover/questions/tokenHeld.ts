import { isServiceCode } from '../../service/errorCode.ts'
import { type Exchange, endedAtMs, fieldOf, jsonOf } from '../exchange.ts'
import { type Finding, notAsked, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { accessTokenIn, tokenSample } from '../samples/token.ts'
import { showMs } from '../showMs.ts'

export const tokenHeld: Question = {
  name: 'token-held',
  section: '2.1',
  asks: 'how long a token was really good, where one ended while this asked',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokenSample],
  needs: [],
  harmless: false,
  async run(parts) {
    return judgeTokenHeld(parts.exchanges(), parts.config.service)
  },
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
interface TokenLife {
  goodForMs: number
  overAfterMs: number
}

function lifeOf(grant: Exchange, exchanges: readonly Exchange[]): TokenLife | null {
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
function byUnit(life: TokenLife, expiresIn: number, assumedMs: number): Finding | null {
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

function ended({ goodForMs, overAfterMs }: TokenLife, saidMs: number, refreshMs: number): Finding {
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
