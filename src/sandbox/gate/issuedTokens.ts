import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK, jwtVerify, SignJWT } from 'jose'
import type pg from 'pg'
import type { Clients } from '../clients.ts'
import type { SeededRandom } from '../processing/seededRandom.ts'
import type { SandboxClock } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { readOrCreateState, writeState } from '../storage/sandboxSchema.ts'

type Caller = { kind: 'client'; id: string; tokenId: string } | { kind: 'refused'; detail: string }

const algorithm = 'EdDSA'
export const tokenIssuer = 'urn:outboxd:sandbox'
export const tokenAudience = 'urn:outboxd:sandbox:api'

interface TokenParts {
  pool: pg.Pool
  clock: SandboxClock
  random: SeededRandom
  live: (client: string) => LiveSettings
  clients: Clients
}

interface Keys {
  privateKey: CryptoKey
  publicKey: CryptoKey
}

/** Issues and checks access tokens. The signing key is in the database, so tokens survive a restart. */
export class IssuedTokens {
  readonly #parts: TokenParts
  readonly #keys: Keys
  #revocations: Record<string, number>

  private constructor(parts: TokenParts, keys: Keys, revocations: Record<string, number>) {
    this.#parts = parts
    this.#keys = keys
    this.#revocations = revocations
  }

  static async open(parts: TokenParts, givenKey: JWK | undefined): Promise<IssuedTokens> {
    const jwk = givenKey ?? (await readOrCreateKey(parts.pool))
    const { d: _private, ...publicJwk } = jwk
    const [privateKey, publicKey] = await Promise.all([importJWK(jwk, algorithm), importJWK(publicJwk, algorithm)])
    const revocations = await readOrCreateState<Record<string, number>>(parts.pool, 'revocations', {})
    const keys = { privateKey: privateKey as CryptoKey, publicKey: publicKey as CryptoKey }
    return new IssuedTokens(parts, keys, revocations)
  }

  async issue(clientId: string, lifetimeSeconds: number, form: LiveSettings['tokenForm']): Promise<string> {
    const nowSeconds = this.#parts.clock.nowUs() / 1_000_000
    const jwt = await new SignJWT({ generation: this.#generationOf(clientId) })
      .setProtectedHeader({ alg: algorithm, typ: 'at+jwt' })
      .setSubject(clientId)
      .setIssuer(tokenIssuer)
      .setAudience(tokenAudience)
      .setIssuedAt(Math.floor(nowSeconds))
      .setExpirationTime(Math.ceil(nowSeconds) + lifetimeSeconds)
      .setJti(this.#parts.random.tokenId(clientId))
      .sign(this.#keys.privateKey)
    return form === 'jwt' ? jwt : toOpaque(jwt)
  }

  async identify(authorization: string | undefined): Promise<Caller> {
    const shown = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (shown === undefined) return refused('The Authorization header carries no Bearer token.')
    const { clock, clients, live } = this.#parts
    const nowSeconds = clock.nowUs() / 1_000_000
    const verified = await jwtVerify(asJwt(shown), this.#keys.publicKey, {
      algorithms: [algorithm],
      issuer: tokenIssuer,
      audience: tokenAudience,
      requiredClaims: ['sub', 'exp', 'generation'],
      currentDate: new Date(nowSeconds * 1000),
    }).catch(() => undefined)
    if (verified === undefined || !isCanonical(shown))
      return refused('The access token was not issued here, or has expired.')
    const { sub: id = '', jti: tokenId = '', iat = 0, generation } = verified.payload
    if (!clients.has(id)) return refused('The access token belongs to an unknown client.')
    if (iat + (live(id).tokenHeldSeconds ?? Number.POSITIVE_INFINITY) <= nowSeconds)
      return refused('The access token has expired.')
    if (generation !== this.#generationOf(id)) return refused('The access token has been revoked.')
    return { kind: 'client', id, tokenId }
  }

  async revoke(client: string | null): Promise<void> {
    const concerned = client === null ? this.#parts.clients.ids : [client]
    const more = Object.fromEntries(concerned.map((id) => [id, this.#generationOf(id)]))
    this.#revocations = { ...this.#revocations, ...more }
    await writeState(this.#parts.pool, 'revocations', this.#revocations)
  }

  #generationOf(client: string): number {
    return (this.#revocations[client] ?? 0) + 1
  }
}

async function readOrCreateKey(pool: pg.Pool): Promise<JWK> {
  const fresh = await generateKeyPair(algorithm, { extractable: true })
  return readOrCreateState<JWK>(pool, 'signing_key', await exportJWK(fresh.privateKey))
}

const opaquePrefix = 'o_'

/** Hides the JWT from the client. The token then needs no row in the database. */
function toOpaque(jwt: string): string {
  return opaquePrefix + Buffer.from(jwt).reverse().toString('base64url')
}

function asJwt(token: string): string {
  if (!token.startsWith(opaquePrefix)) return token
  return Buffer.from(token.slice(opaquePrefix.length), 'base64url').reverse().toString()
}

/** False for another text of the same signature, because decoders ignore the last bits of base64url. */
function isCanonical(token: string): boolean {
  const parts = token.startsWith(opaquePrefix) ? [token.slice(opaquePrefix.length)] : token.split('.')
  return parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}

function refused(detail: string): Caller {
  return { kind: 'refused', detail }
}
