import { generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import * as oauth from 'oauth4webapi'
import { describe, expect, test } from 'vitest'
import { tokenAudienceClaim, tokenIssuerClaim } from '../../../src/sandbox/gate/tokenIssuer.ts'
import { openForFile } from '../../support/openForFile.ts'
import { type Json, setup } from '../setup.ts'

const s = openForFile(() => setup())

const right = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: 'sandbox-secret' }

async function ask(body: string, headers: Record<string, string> = {}): Promise<{ response: Response; json: Json }> {
  const response = await fetch(`${s.sandbox.url}/oauth/token`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
  return { response, json: await response.json() }
}

const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()

describe('the token endpoint', () => {
  test('gives a token to an OAuth client library', async () => {
    const server = { issuer: s.sandbox.url, token_endpoint: `${s.sandbox.url}/oauth/token` }
    const client = { client_id: 'sandbox' }
    const authentication = oauth.ClientSecretPost('sandbox-secret')
    const response = await oauth.clientCredentialsGrantRequest(server, client, authentication, new URLSearchParams(), {
      [oauth.allowInsecureRequests]: true,
    })
    const token = await oauth.processClientCredentialsResponse(server, client, response)
    expect(token).toMatchObject({ token_type: 'bearer', expires_in: 3600 })
    const answer = await s.call('GET', '/api/v1/data/none', undefined, {
      authorization: `Bearer ${token.access_token}`,
    })
    expect(answer.status).toBe(404)
  })

  test('refuses a wrong secret so that an OAuth client library can read the reason', async () => {
    const server = { issuer: s.sandbox.url, token_endpoint: `${s.sandbox.url}/oauth/token` }
    const client = { client_id: 'sandbox' }
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretPost('wrong'),
      new URLSearchParams(),
      { [oauth.allowInsecureRequests]: true },
    )
    const refusal = await oauth.processClientCredentialsResponse(server, client, response).catch((error) => error)
    expect(String(refusal.cause?.error ?? refusal.cause?.[0]?.scheme ?? refusal.error)).toMatch(/invalid_client|basic/i)
  })

  test.each([
    ['seconds', 3600],
    ['milliseconds', 3_600_000],
    ['minutes', 60],
  ])('gives expires_in in %s if that unit is set', async (expiresInUnit, expected) => {
    await s.control('PATCH', '/settings', { expiresInUnit })
    const { json } = await ask(form(right))
    await s.control('DELETE', '/settings')
    expect(json.expires_in).toBe(expected)
  })

  test('forbids caching of its answers', async () => {
    const { response, json } = await ask(form(right))
    expect(response.status).toBe(200)
    expect(json).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 3600 })
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('pragma')).toBe('no-cache')
  })

  test.each([
    ['another grant type', form({ ...right, grant_type: 'password' }), 400, 'unsupported_grant_type'],
    ['no grant type', form({ client_id: 'sandbox', client_secret: 'sandbox-secret' }), 400, 'invalid_request'],
    ['no client id', form({ ...right, client_id: '' }), 400, 'invalid_request'],
    ['no client secret', form({ ...right, client_secret: '' }), 400, 'invalid_request'],
    ['a field twice', `${form(right)}&client_id=sandbox`, 400, 'invalid_request'],
    ['a wrong secret', form({ ...right, client_secret: 'wrong' }), 401, 'invalid_client'],
    ['an unknown client', form({ ...right, client_id: 'other' }), 401, 'invalid_client'],
    ['an empty body', '', 400, 'invalid_request'],
  ])('answers %s as RFC 6749, 5.2 says', async (_what, body, status, error) => {
    const { response, json } = await ask(body)
    expect({ status: response.status, error: json.error }).toEqual({ status, error })
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(response.headers.get('cache-control')).toBe('no-store')
    if (status === 401) expect(response.headers.get('www-authenticate')).toMatch(/^Basic /)
  })

  test('accepts only a form', async () => {
    const { response, json } = await ask(JSON.stringify(right), { 'content-type': 'application/json' })
    expect({ status: response.status, error: json.error }).toEqual({ status: 400, error: 'invalid_request' })
  })

  test('does not accept credentials in a header, because the interface has them in the form', async () => {
    const authorization = `Basic ${Buffer.from('sandbox:sandbox-secret').toString('base64')}`
    const { response, json } = await ask('grant_type=client_credentials', { authorization })
    expect({ status: response.status, error: json.error }).toEqual({ status: 401, error: 'invalid_client' })
  })

  test('does not store the secret in the ledger', async () => {
    await ask(form(right))
    const { rows } = await s.control('GET', '/ledger?endpoint=token')
    expect(rows.at(-1).body).toBe('grant_type=client_credentials&client_id=sandbox&client_secret=***')
    await ask(JSON.stringify(right), { 'content-type': 'application/json' })
    await ask('client%5Fsecret=sandbox-secret')
    expect(JSON.stringify(await s.control('GET', '/ledger'))).not.toContain('sandbox-secret')
  })
})

describe('an access token', () => {
  const get = (authorization: string | undefined) =>
    s.call('GET', '/api/v1/data/none', undefined, { authorization: authorization ?? '' })

  async function ourJwk(): Promise<JWK> {
    const { rows } = await s.database.pool.query("select value from sandbox.state where name = 'signing_key'")
    return rows[0]?.value
  }

  interface Change {
    audience?: string
    issuer?: string
    expires?: string
    generation?: number
    algorithm?: string
  }

  async function signed(change: Change, key?: Parameters<SignJWT['sign']>[0]): Promise<string> {
    return new SignJWT({ generation: change.generation ?? 1 })
      .setProtectedHeader({ alg: change.algorithm ?? 'EdDSA' })
      .setSubject('sandbox')
      .setIssuer(change.issuer ?? tokenIssuerClaim)
      .setAudience(change.audience ?? tokenAudienceClaim)
      .setIssuedAt()
      .setExpirationTime(change.expires ?? '1h')
      .sign(key ?? (await importJWK(await ourJwk(), change.algorithm ?? 'EdDSA')))
  }

  test('that the test signs itself is accepted, so the next tests’ refusals have their own reasons', async () => {
    expect((await get(`Bearer ${await signed({})}`)).status).toBe(404)
  })

  test.each<[string, () => Promise<string>]>([
    ['for another audience', () => signed({ audience: 'urn:someone:else' })],
    ['from another issuer', () => signed({ issuer: 'urn:someone:else' })],
    ['that has expired', () => signed({ expires: '-1s' })],
    ['signed with another key', async () => signed({}, (await generateKeyPair('EdDSA')).privateKey)],
    ['that names our algorithm differently', () => signed({ algorithm: 'Ed25519' })],
    ['of an earlier generation', () => signed({ generation: 0 })],
    ['of no format', async () => 'a.b.c'],
  ])('%s is refused with 401', async (_what, make) => {
    const answer = await get(`Bearer ${await make()}`)
    expect(answer.status).toBe(401)
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /)
    expect(answer.headers.get('x-ratelimit-remaining')).toMatch(/^\d+$/)
  })

  test.each(['jwt', 'opaque'] as const)('(%s) is refused if its last character was changed', async (tokenForm) => {
    await using own = await setup({ tokenForm })
    const token = await own.token()
    const statusOf = async (last: string) => {
      const authorization = `Bearer ${token.slice(0, -1)}${last}`
      return (await own.call('GET', '/api/v1/data/none', undefined, { authorization })).status
    }
    const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    const accepted = []
    for (const letter of letters) if ((await statusOf(letter)) !== 401) accepted.push(letter)
    expect(accepted).toEqual([token.at(-1)])
  })

  test('with algorithm none is refused', async () => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { sub: 'sandbox', iss: tokenIssuerClaim, aud: tokenAudienceClaim, exp: 9_999_999_999, generation: 1 }
    expect((await get(`Bearer ${part({ alg: 'none' })}.${part(claims)}.`)).status).toBe(401)
  })

  test('signed with the public key as if it were a shared secret is refused', async () => {
    const { x: publicKey = '' } = await ourJwk()
    const confused = await new SignJWT({ generation: 1 })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('sandbox')
      .setIssuer(tokenIssuerClaim)
      .setAudience(tokenAudienceClaim)
      .setExpirationTime('1h')
      .sign(Buffer.from(publicKey, 'base64url'))
    expect((await get(`Bearer ${confused}`)).status).toBe(401)
  })

  test.each([undefined, 'Bearer', 'Basic abc', 'Token abc'])('given as %j is refused', async (authorization) => {
    expect((await get(authorization)).status).toBe(401)
  })

  test('is refused once it has expired, even if it was accepted before', async () => {
    await s.control('PATCH', '/settings', { tokenLifetimeSeconds: 1 })
    const token = await s.token()
    await s.control('DELETE', '/settings')
    expect((await get(`Bearer ${token}`)).status).toBe(404)
    await expect.poll(async () => (await get(`Bearer ${token}`)).status).toBe(401)
  })

  test('survives a restart', async () => {
    const token = await s.token()
    await s.restart()
    expect((await get(`Bearer ${token}`)).status).toBe(404)
  })

  test('is refused after all tokens were revoked, also after a restart, and a new one is accepted', async () => {
    const token = await s.token()
    await s.control('POST', '/tokens/revoke')
    expect((await get(`Bearer ${token}`)).status).toBe(401)
    await s.restart()
    expect((await get(`Bearer ${token}`)).status).toBe(401)
    expect((await get(`Bearer ${await s.token()}`)).status).toBe(404)
  })
})
