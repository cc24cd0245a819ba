import fc from 'fast-check'
import type { Json } from '../../sandbox/setup.ts'
import { anyString } from '../../support/anyString.ts'

/** A request made from the OpenAPI document. Most are nearly valid, some are not at all. */
export interface FuzzedRequest {
  method: string
  path: string
  headers: Record<string, string>
  body: Buffer | undefined
  /** Path and method of the request's operation, or undefined if the document has none. */
  operation: [path: string, method: string] | undefined
}

/** JSON as text, so that it can contain numbers and escapes that no JavaScript value has. */
const stringText = fc.oneof(
  { weight: 4, arbitrary: anyString({ maxLength: 12 }).map((text) => JSON.stringify(text)) },
  { weight: 2, arbitrary: fc.constantFrom('""', '"\\ud800"', '"\\udc00x"', '"\\u0000"', '"\\\\u0000"', '"fail:E003"') },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom('😀', 'é', 'a'), maxLength: 12 }).map((s) => `"${s}"`) },
)
const numberText = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.integer().map(String),
  fc.constantFrom(
    '-0',
    '0.00',
    '1e99',
    '1e100',
    '1e131071',
    '1e131072',
    '-1e-20000',
    '0e-16000',
    '1E+2',
    '12345678.90',
  ),
  fc.integer({ min: 90, max: 2000 }).map((digits) => '7'.repeat(digits)),
)
const deepText = fc.integer({ min: 1, max: 4000 }).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`)
const { anyText } = fc.letrec<{ anyText: string }>((tie) => ({
  anyText: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('null', 'true', 'false', '[]', '{}'),
    stringText,
    numberText,
    { weight: 1, arbitrary: fc.array(tie('anyText'), { maxLength: 4 }).map((items) => `[${items.join()}]`) },
    {
      weight: 1,
      arbitrary: fc
        .array(fc.tuple(stringText, tie('anyText')), { maxLength: 4 })
        .map((members) => `{${members.map(([key, value]) => `${key}:${value}`).join()}}`),
    },
  ),
}))
const wrongText = fc.oneof({ weight: 8, arbitrary: anyText }, { weight: 1, arbitrary: deepText })

/** JSON that mostly fits `schema`. */
function schemaText(schema: Json): fc.Arbitrary<string> {
  return fc.oneof({ weight: 12, arbitrary: rightText(schema) }, { weight: 1, arbitrary: wrongText })
}

function rightText(schema: Json): fc.Arbitrary<string> {
  const types = [schema.type].flat()
  if (schema.const !== undefined) return fc.constant(JSON.stringify(schema.const))
  if (schema.enum) return fc.constantFrom(...schema.enum.map((value: unknown) => JSON.stringify(value)))
  if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern)).map((text) => JSON.stringify(text))
  if (schema.format === 'uuid') return uuid.map((id) => JSON.stringify(id))
  if (types.includes('object')) return objectText(schema)
  if (types.includes('array')) return fc.array(anyText, { maxLength: 5 }).map((items) => `[${items.join()}]`)
  if (types.includes('string')) {
    const { minLength = 0, maxLength = 20 } = schema
    return fc.string({ minLength, maxLength }).map((text) => JSON.stringify(text))
  }
  return anyText
}

function objectText({ properties = {}, required = [] }: Json): fc.Arbitrary<string> {
  const members = Object.entries<Json>(properties).map(([key, schema]) => {
    const member = schemaText(schema).map((text) => `${JSON.stringify(key)}:${text}`)
    return fc.option(member, { freq: required.includes(key) ? 25 : 1 })
  })
  const extra = fc.option(
    fc.tuple(stringText, wrongText).map(([key, text]) => `${key}:${text}`),
    { freq: 1 },
  )
  return fc.tuple(...members, extra).map((texts) => `{${texts.filter((text) => text !== null).join()}}`)
}

function formText({ properties }: Json): fc.Arbitrary<string> {
  const known: Record<string, string> = {
    grant_type: 'client_credentials',
    client_id: 'sandbox',
    client_secret: 'sandbox-secret',
  }
  const fields = Object.keys(properties).map((key) => {
    const value = fc.oneof(
      { weight: 8, arbitrary: fc.constant(encodeURIComponent(known[key] ?? '')) },
      { weight: 1, arbitrary: fc.webQueryParameters() },
      { weight: 1, arbitrary: fc.constantFrom('%ff', '%zz', '', '%00', '+') },
    )
    return fc.option(
      value.map((text) => `${key}=${text}`),
      { freq: 20 },
    )
  })
  return fc.tuple(...fields).map((texts) => texts.filter((text) => text !== null).join('&'))
}

/** Few different ids, so that some are used twice and some exist when they are polled. */
const uuid = fc.oneof(
  fc.uuid(),
  fc.integer({ min: 0, max: 9 }).map((n) => `11111111-1111-4111-8111-11111111111${n}`),
)
const pathSegment = fc.oneof(
  uuid,
  fc.constantFrom('none', '%', '%00', '%ff', '%F0%9F%98%80', '..', 'x'.repeat(300)),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).map(encodeURIComponent),
)
/** Characters that a header may contain. */
const headerText = fc.string({
  unit: fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
  maxLength: 300,
})

const marred = (body: Buffer) =>
  fc.oneof(
    { weight: 20, arbitrary: fc.constant(body) },
    { weight: 1, arbitrary: fc.nat(body.length).map((length) => body.subarray(0, length)) },
    {
      weight: 1,
      arbitrary: fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => Buffer.concat([body, bytes])),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.nat(body.length), fc.uint8Array({ minLength: 1, maxLength: 3 }))
        .map(([at, bytes]) => Buffer.concat([body.subarray(0, at), bytes, body.subarray(at)])),
    },
  )

/** Any request of `document`, or one that the document lacks. */
export function fuzzedRequest(document: Json, bearer: string): fc.Arbitrary<FuzzedRequest> {
  const operations = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) =>
      operationRequest(document, bearer, path, method, operation),
    ),
  )
  return fc.oneof(...operations.map((arbitrary) => ({ weight: 4, arbitrary })), {
    weight: 1,
    arbitrary: strangeRequest(bearer),
  })
}

function operationRequest(
  document: Json,
  bearer: string,
  template: string,
  method: string,
  operation: Json,
): fc.Arbitrary<FuzzedRequest> {
  const content = Object.entries<Json>(operation.requestBody?.content ?? {})[0]
  const path = pathSegment.map((segment) => template.replace(/\{\w+\}/, segment))
  const body =
    content === undefined
      ? fc.constant(undefined)
      : bodyText(content[0], resolve(document, content[1].schema)).chain((text) => marred(Buffer.from(text)))
  return fc.record({
    method: fc.constant(method.toUpperCase()),
    path,
    headers: headers(bearer, content?.[0]),
    body,
    operation: fc.constant<[string, string]>([template, method]),
  })
}

function bodyText(mediaType: string, schema: Json): fc.Arbitrary<string> {
  return mediaType === 'application/json' ? schemaText(schema) : formText(schema)
}

function headers(bearer: string, contentType: string | undefined): fc.Arbitrary<Record<string, string>> {
  const maybe = (name: string, arbitrary: fc.Arbitrary<string | null>) =>
    arbitrary.map((value): Record<string, string> => (value === null ? {} : { [name]: value }))
  return fc
    .tuple(
      maybe(
        'authorization',
        fc.oneof(
          { weight: 20, arbitrary: fc.constant(`Bearer ${bearer}`) },
          { weight: 1, arbitrary: fc.constantFrom(null, 'Bearer none', 'Basic eDp5', `Bearer ${bearer}x`) },
          { weight: 1, arbitrary: headerText },
        ),
      ),
      maybe(
        'content-type',
        fc.oneof(
          { weight: 20, arbitrary: fc.constant(contentType ?? null) },
          { weight: 1, arbitrary: fc.constantFrom(null, 'text/plain', 'application/json; charset=utf-16', '/') },
        ),
      ),
      maybe('idempotency-key', fc.option(fc.oneof(headerText, fc.constantFrom('', 'a', 'b')), { freq: 2 })),
    )
    .map((parts) => Object.assign({}, ...parts))
}

/** A request that the document lacks: an unknown method or path. */
function strangeRequest(bearer: string): fc.Arbitrary<FuzzedRequest> {
  return fc.record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'),
    path: fc.oneof(
      fc.constantFrom('/api/v1/data', '/api/v1/orders', '/oauth/', '/api/v1/data/', '/api/', '/', '/api/v2/data'),
      pathSegment.map((segment) => `/api/v1/${segment}`),
    ),
    headers: headers(bearer, undefined),
    body: fc.constant(undefined),
    operation: fc.constant(undefined),
  })
}

/** Resolves a `$ref` of the document. */
export function resolve(document: Json, node: Json): Json {
  if (node?.$ref === undefined) return node
  return node.$ref
    .slice(2)
    .split('/')
    .reduce((at: Json, key: string) => at[key], document)
}
