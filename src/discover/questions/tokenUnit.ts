import { fieldOf } from '../exchange.ts'
import { type Finding, likely, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { tokenSample } from '../samples/token.ts'

export const tokenUnit: Question = {
  name: 'token-unit',
  section: '2.1',
  asks: 'what expires_in counts: seconds, milliseconds or minutes',
  requestsMax: 0,
  recordsMax: 0,
  samples: [tokenSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const { accessToken, exchange } = await parts.sample(tokenSample)
    const { answer } = exchange
    const expiresIn = answer.kind === 'response' ? Number(fieldOf(answer.json, 'expires_in')) : Number.NaN
    return judgeTokenUnit({
      expiresIn,
      jwtLifetimeSeconds: jwtLifetimeSeconds(accessToken),
      assumed: parts.config.tokenUnit,
    })
  },
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

/** RFC 7519, 4.1: exp less iat, in seconds; null where the token is none, or has not both. */
export function jwtLifetimeSeconds(accessToken: string): number | null {
  const [, claims, signature] = accessToken.split('.')
  if (claims === undefined || signature === undefined) return null
  try {
    const { exp, iat } = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'))
    return typeof exp === 'number' && typeof iat === 'number' && exp > iat ? exp - iat : null
  } catch {
    return null
  }
}
