import { exportJWK, generateKeyPair, type JWK, jwtVerify, SignJWT } from 'jose'
import type pg from 'pg'
import type { SandboxParts } from '../exchange.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { readOrCreateState, writeState } from '../storage/sandboxSchema.ts'

type Caller = { kind: 'client'; id: string; tokenId: string } | { kind: 'refused'; detail: string }

const algorithm = 'EdDSA'
export const tokenIssuerClaim = 'urn:outboxd:sandbox'
export const tokenAudienceClaim = 'urn:outboxd:sandbox:api'

type TokenParts = Pick<SandboxParts, 'pool' | 'clock' | 'random' | 'liveSettingsOf' | 'clients'>

export interface TokenIssuer {
  issue(clientId: string, lifetimeSeconds: number, form: LiveSettings['tokenForm']): Promise<string>
  identify(authorization: string | undefined): Promise<Caller>
  /** @param client null for all clients */
  revoke(client: string | null): Promise<void>
}

/** Keeps the signing key in the database, so that tokens survive a restart. */
export async function createTokenIssuer(
  { pool, clock, random, liveSettingsOf, clients }: TokenParts,
  givenSigningKey: JWK | undefined,
): Promise<TokenIssuer> {
  const privateKey = givenSigningKey ?? (await readOrCreateKey(pool))
  const { d: _private, ...publicKey } = privateKey
  let revocations = await readOrCreateState<Record<string, number>>(pool, 'revocations', {})
  const generationOf = (client: string) => (revocations[client] ?? 0) + 1
  return {
    async issue(clientId, lifetimeSeconds, form) {
      const nowSeconds = clock.nowUs() / 1_000_000
      const jwt = await new SignJWT({ generation: generationOf(clientId) })
        .setProtectedHeader({ alg: algorithm, typ: 'at+jwt' })
        .setSubject(clientId)
        .setIssuer(tokenIssuerClaim)
        .setAudience(tokenAudienceClaim)
        .setIssuedAt(Math.floor(nowSeconds))
        .setExpirationTime(Math.ceil(nowSeconds) + lifetimeSeconds)
        .setJti(random.tokenId(clientId))
        .sign(privateKey)
      return form === 'jwt' ? jwt : toOpaque(jwt)
    },
    async identify(authorization) {
      const shown = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
      if (shown === undefined) return refused('The Authorization header carries no Bearer token.')
      const nowSeconds = clock.nowUs() / 1_000_000
      const verified = await jwtVerify(asJwt(shown), publicKey, {
        algorithms: [algorithm],
        issuer: tokenIssuerClaim,
        audience: tokenAudienceClaim,
        requiredClaims: ['sub', 'exp', 'generation'],
        currentDate: new Date(nowSeconds * 1000),
      }).catch(() => undefined)
      if (verified === undefined || !isCanonical(shown))
        return refused('The access token was not issued here, or has expired.')
      const { sub: id = '', jti: tokenId = '', iat = 0, generation } = verified.payload
      if (!clients.has(id)) return refused('The access token belongs to an unknown client.')
      if (iat + (liveSettingsOf(id).tokenHeldSeconds ?? Number.POSITIVE_INFINITY) <= nowSeconds)
        return refused('The access token has expired.')
      if (generation !== generationOf(id)) return refused('The access token has been revoked.')
      return { kind: 'client', id, tokenId }
    },
    async revoke(client) {
      const revoked = client === null ? clients.ids : [client]
      revocations = { ...revocations, ...Object.fromEntries(revoked.map((id) => [id, generationOf(id)])) }
      await writeState(pool, 'revocations', revocations)
    },
  }
}

async function readOrCreateKey(pool: pg.Pool): Promise<JWK> {
  const fresh = await generateKeyPair(algorithm, { extractable: true })
  return readOrCreateState<JWK>(pool, 'signing_key', await exportJWK(fresh.privateKey))
}

const opaquePrefix = 'o_'

/** Makes a JWT opaque, so that the token needs no row in the database. */
function toOpaque(jwt: string): string {
  return opaquePrefix + Buffer.from(jwt).reverse().toString('base64url')
}

function asJwt(token: string): string {
  if (!token.startsWith(opaquePrefix)) return token
  return Buffer.from(token.slice(opaquePrefix.length), 'base64url').reverse().toString()
}

/** False for a token with a changed last character, because decoders ignore the last bits of base64url. */
function isCanonical(token: string): boolean {
  const parts = token.startsWith(opaquePrefix) ? [token.slice(opaquePrefix.length)] : token.split('.')
  return parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}

function refused(detail: string): Caller {
  return { kind: 'refused', detail }
}
