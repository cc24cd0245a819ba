import { createHmac } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK, jwtVerify, SignJWT } from 'jose'
import type pg from 'pg'
import type { Draws } from '../processing/draws.ts'
import type { SandboxClock } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { readOrCreateState, writeState } from '../storage/sandboxSchema.ts'

/** The sender of a request, by its Authorization header. */
export type Caller = { kind: 'client'; id: string; tokenId: string } | { kind: 'refused'; detail: string }

const algorithm = 'EdDSA'
export const issuer = 'urn:outboxd:sandbox'
export const audience = 'urn:outboxd:sandbox:api'

/** Tokens that are remembered as genuine: to verify a signature takes longer than all else in a request. */
const rememberedMax = 1000

interface Claims {
  clientId: string
  tokenId: string
  issuedUs: number
  expiresUs: number
  generation: number
}

interface TokenParts {
  pool: pg.Pool
  clock: SandboxClock
  draws: Draws
  live: (client: string) => LiveSettings
}

interface Keys {
  privateKey: CryptoKey
  publicKey: CryptoKey
}

/** Issues and verifies access tokens (JWT); the key is in the database, so tokens survive a restart. */
export class Tokens {
  readonly #parts: TokenParts
  readonly #keys: Keys
  #generations: TokenGenerations
  readonly #genuine = new Map<string, Claims>()

  private constructor(parts: TokenParts, keys: Keys, generations: TokenGenerations) {
    this.#parts = parts
    this.#keys = keys
    this.#generations = generations
  }

  /**
   * @param clients whose tokens are good; the tokens of a client that has gone, or whose credentials have changed, end
   * @param givenKey signs instead of the key in the database
   */
  static async open(parts: TokenParts, clients: readonly ClientKeys[], givenKey: JWK | undefined): Promise<Tokens> {
    const jwk = givenKey ?? (await keptKey(parts.pool))
    const { d: _private, ...publicJwk } = jwk
    const [privateKey, publicKey] = await Promise.all([importJWK(jwk, algorithm), importJWK(publicJwk, algorithm)])
    const first = await readOrCreateState(parts.pool, 'token_generation', 1)
    const kept = await readOrCreateState<TokenGenerations>(parts.pool, 'token_generations', {})
    const generations = generationsNow(kept, clients, first, jwk.d ?? '')
    await writeState(parts.pool, 'token_generations', generations)
    const keys = { privateKey: privateKey as CryptoKey, publicKey: publicKey as CryptoKey }
    return new Tokens(parts, keys, generations)
  }

  /** @param form of a JWT, or of something that says nothing to a client */
  async issue(clientId: string, lifetimeSeconds: number, form: LiveSettings['tokenForm']): Promise<string> {
    const jwt = await this.#sign(clientId, lifetimeSeconds)
    return form === 'jwt' ? jwt : opaque(jwt)
  }

  #sign(clientId: string, lifetimeSeconds: number): Promise<string> {
    const nowSeconds = this.#parts.clock.nowUs() / 1_000_000
    return new SignJWT({ generation: this.#generations[clientId]?.generation })
      .setProtectedHeader({ alg: algorithm, typ: 'at+jwt' })
      .setSubject(clientId)
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt(Math.floor(nowSeconds))
      .setExpirationTime(Math.ceil(nowSeconds) + lifetimeSeconds) // whole seconds, rounded up
      .setJti(this.#parts.draws.tokenId(clientId))
      .sign(this.#keys.privateKey)
  }

  /** Judges an Authorization header: signature, algorithm, issuer, audience, expiry, and not revoked. */
  async identify(authorization: string | undefined): Promise<Caller> {
    const shown = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (shown === undefined) return refused('The Authorization header carries no Bearer token.')
    const token = asJwt(shown)
    const claims = isCanonical(shown) ? (this.#genuine.get(token) ?? (await this.#verify(token))) : undefined
    if (claims === undefined) return refused('The access token is not one of ours, or has expired.')
    const endsUs = Math.min(claims.expiresUs, claims.issuedUs + this.#heldUs(claims.clientId))
    if (endsUs <= this.#parts.clock.nowUs()) return refused('The access token has expired.')
    const { generation, fingerprint = null } = this.#generations[claims.clientId] ?? {}
    if (fingerprint === null) return refused('The access token is of a client that is no longer known.')
    if (claims.generation !== generation)
      return refused('The access token has been revoked, or the secret has changed.')
    return { kind: 'client', id: claims.clientId, tokenId: claims.tokenId }
  }

  /** Makes every token issued so far invalid, of one client or of all. */
  async revoke(client: string | null): Promise<void> {
    const next = Object.entries(this.#generations).map(([id, { generation, fingerprint }]) => {
      const isConcerned = client === null || id === client
      return [id, { generation: isConcerned ? generation + 1 : generation, fingerprint }]
    })
    this.#generations = Object.fromEntries(next)
    await writeState(this.#parts.pool, 'token_generations', this.#generations)
  }

  #heldUs(client: string): number {
    return (this.#parts.live(client).tokenHeldSeconds ?? Number.POSITIVE_INFINITY) * 1_000_000
  }

  async #verify(token: string): Promise<Claims | undefined> {
    const verified = await jwtVerify(token, this.#keys.publicKey, {
      algorithms: [algorithm],
      issuer,
      audience,
      requiredClaims: ['sub', 'exp', 'generation'],
      currentDate: new Date(this.#parts.clock.nowUs() / 1000),
    }).catch(() => undefined) // whatever is wrong with it, the answer is 401
    if (verified === undefined) return undefined
    const { sub = '', jti: tokenId = '', iat = 0, exp = 0, generation } = verified.payload
    const [issuedUs, expiresUs] = [iat * 1_000_000, exp * 1_000_000]
    const claims = { clientId: sub, tokenId, issuedUs, expiresUs, generation: Number(generation) }
    if (this.#genuine.size >= rememberedMax) this.#genuine.clear()
    this.#genuine.set(token, claims)
    return claims
  }
}

async function keptKey(pool: pg.Pool): Promise<JWK> {
  const fresh = await generateKeyPair(algorithm, { extractable: true })
  return readOrCreateState<JWK>(pool, 'signing_key', await exportJWK(fresh.privateKey))
}

const opaquePrefix = 'o_'

/** A word that a client cannot read, and that needs no row in the database. */
function opaque(jwt: string): string {
  return opaquePrefix + Buffer.from(jwt).reverse().toString('base64url')
}

function asJwt(token: string): string {
  if (!token.startsWith(opaquePrefix)) return token
  return Buffer.from(token.slice(opaquePrefix.length), 'base64url').reverse().toString()
}

/** The last character of base64url has bits that a decoder ignores, so that several texts would be one signature. */
function isCanonical(token: string): boolean {
  const parts = token.startsWith(opaquePrefix) ? [token.slice(opaquePrefix.length)] : token.split('.')
  return parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}

function refused(detail: string): Caller {
  return { kind: 'refused', detail }
}

/** For each client that ever was: the generation of its tokens, and a fingerprint of its credentials; null: it is gone. */
export type TokenGenerations = Record<string, { generation: number; fingerprint: string | null }>

export interface ClientKeys {
  id: string
  secret: string
}

/**
 * The generations at a start. A client that comes back, or has a different secret, begins the next generation, so that no token
 * of before is good again.
 *
 * @param first for clients not seen before
 * @param key   keys the fingerprint, so that it says nothing of the secret
 */
export function generationsNow(
  kept: TokenGenerations,
  clients: readonly ClientKeys[],
  first: number,
  key: string,
): TokenGenerations {
  const gone = Object.entries(kept).map(([id, { generation }]) => [id, { generation, fingerprint: null }] as const)
  const here = clients.map(({ id, secret }) => {
    const fingerprint = createHmac('sha256', key)
      .update(JSON.stringify([id, secret]))
      .digest('base64url')
    const before = kept[id]
    if (before === undefined) return [id, { generation: first, fingerprint }] as const
    return [id, { generation: before.generation + (before.fingerprint === fingerprint ? 0 : 1), fingerprint }] as const
  })
  return Object.fromEntries([...gone, ...here])
}
