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
    await parts.sample(tokenSample)
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
    return inAnotherUnit(life, expiresIn, expiresInUnitMs) ?? ended(life, expiresIn * expiresInUnitMs, tokenRefreshMs)
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
  const uses = exchanges.filter(({ accessToken, answer }) => accessToken === token && answer.kind === 'response')
  const refused = uses.findIndex(({ answer }) => answer.kind === 'response' && answer.status === 401)
  const last = uses[refused - 1]
  const first = uses[refused]
  if (last === undefined || first === undefined) return null
  return { goodForMs: last.startedAtMs - grant.startedAtMs, overAfterMs: endedAtMs(first) - grant.startedAtMs }
}

const unitsMs = { milliseconds: 1, seconds: 1_000, minutes: 60_000 }

/** It ended when expires_in would have it end in a unit that is not the configured one; null where not. */
function inAnotherUnit(life: TokenLife, expiresIn: number, assumedMs: number): Finding | null {
  const fits = (unitMs: number) => expiresIn * unitMs >= life.goodForMs && expiresIn * unitMs <= life.overAfterMs
  const unit = Object.entries(unitsMs).find(([, unitMs]) => unitMs !== assumedMs && fits(unitMs))?.[0]
  if (unit === undefined || fits(assumedMs)) return null
  const why = `a token with expires_in ${expiresIn} was taken after ${showMs(life.goodForMs)}, and refused after ${showMs(life.overAfterMs)}`
  const set = [{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: unit, why }]
  const assumed = `${showMs(expiresIn * assumedMs)}, as expires_in says`
  return sure(`${showMs(life.goodForMs)} to ${showMs(life.overAfterMs)}`, why, { assumed, differs: true, set })
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
