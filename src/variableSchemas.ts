import { isIP } from 'node:net'
import { z } from 'zod'
import { serviceResources } from './resources.ts'

/** Accepts only digits: `1e3`, ` 5` and an empty value are mistakes. */
export const integerSchema = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,12}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))

/** Decimals are for tests and benchmarks, which use short times. */
export const secondsAsMsSchema = (secondsMax: number) =>
  z
    .string()
    .regex(/^\d{1,9}(\.\d{1,3})?$/, 'must be a number of seconds')
    .transform((text) => Math.round(Number(text) * 1000))
    .pipe(
      z
        .number()
        .min(1, 'must be more than 0')
        .max(secondsMax * 1000, `must be at most ${secondsMax}`),
    )

export const secondsOrNeverAsMsSchema = (secondsMax: number) =>
  z.union(
    [z.literal('0').transform(() => null), secondsAsMsSchema(secondsMax)],
    'must be a number of seconds, or 0 for never',
  )

export const nameSchema = z.string().regex(/^[^\p{C}]{0,40}$/u, 'must have at most 40 printable characters')

export const postgresUrlSchema = z
  .string()
  .regex(/^postgres(ql)?:\/\//, 'must begin with postgres://')
  .refine(
    (text) => !namesSeveralHosts(text),
    'names several hosts: give one address that always leads to the primary (docs/run/restore.md, "Failover")',
  )
  .refine(
    isReadableByDriver,
    'is not a valid URL. In its user name and password, write / as %2F, ? as %3F, # as %23 and @ as %40. After the host, too, write @ as %40',
  )

/** Refuses an @ after the address: the password has a /, ? or #, and a part of it would be shown as an address. */
function isReadableByDriver(text: string): boolean {
  const isAfterAddress = /^\w+:\/\/[^/?#]*(?:\/[^?#]*|[?#].*)@/.test(text)
  return URL.canParse(text.replace('@/', '@localhost/')) && !isAfterAddress
}

/** True if the URL lists several hosts, also in its parameter `host`. A comma before the @ belongs to the password. */
const namesSeveralHosts = (text: string) =>
  /^\w+:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(text)?.[1]?.includes(',') || /[?&]host=[^&#]*(,|%2c)/i.test(text)

const noCredentials = (url: URL) => url.username === '' && url.password === ''
const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])

export const isUrlOnLoopback = (text = '') => URL.canParse(text) && loopback.has(new URL(text).hostname)

const serviceUrl = z
  .string()
  .refine((text) => URL.canParse(text), 'must be an address such as https://service.example')
  .refine((text) => {
    if (!URL.canParse(text)) return true
    const url = new URL(text)
    return url.protocol === 'https:' || (url.protocol === 'http:' && loopback.has(url.hostname))
  }, 'must be https (http only on loopback)')
  .refine((text) => !URL.canParse(text) || noCredentials(new URL(text)), 'must not contain a user name or password')
  .refine((text) => !/[?#]/.test(text), 'must not contain ? or #, because outboxd appends paths to it')
  .transform((text) => text.replace(/\/+$/, ''))

const paths = Object.values(serviceResources).map(({ path }) => path)

/** Endings that outboxd appends to a URL. If the variable has them, too, every request goes to a wrong URL. */
const appended = {
  base: new RegExp(`(?:/api|/api/v1|${paths.join('|')}|/oauth/token)$`, 'i'),
  auth: /\/(?:oauth(?:\/token)?|api(?:\/v1)?)$/i,
}

const addressWithout = (end: RegExp, path: string) =>
  serviceUrl.refine((address) => !end.test(address), {
    error: ({ input: address }) =>
      `must not end in ${end.exec(String(address))?.[0]}, because outboxd appends ${path}. Set ${String(address).replace(end, '')}`,
  })

/** {base_url} of docs/reference/interface.md. */
export const serviceBaseUrlSchema = addressWithout(appended.base, '/api/v1/…')
/** {auth_url} of docs/reference/interface.md. */
export const serviceAuthUrlSchema = addressWithout(appended.auth, '/oauth/token')

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

export const proxyUrlSchema = z.string().refine((text) => {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(text)
  const isWhole = pathname === '/' && search === '' && hash === '' && isDecodable(username + password)
  return protocol === 'http:' && hostname !== '' && isWhole
}, 'must be http://host:port or http://user:password@host:port, with special characters of user and password percent-encoded')

export const collectorUrlSchema = z
  .string()
  .refine((text) => {
    if (!URL.canParse(text)) return false
    const url = new URL(text)
    return ['http:', 'https:'].includes(url.protocol) && noCredentials(url) && !/[?#]/.test(text)
  }, 'must be an address such as http://localhost:4318, without user, password, ? or #')
  .transform((text) => text.replace(/\/+$/, ''))

/** Pairs `name=value`, separated by commas; values are percent-decoded. @see OpenTelemetry Protocol Exporter, headers */
export const otlpHeadersSchema = z
  .string()
  .transform((text) => text.split(',').map((pair) => pair.trim()))
  .refine(
    (pairs) => pairs.every((pair) => /^[\w!#$&'*+.^`|~-]+=/.test(pair) && isDecodable(pair) && isHeaderValue(pair)),
    'must be name=value, or several of them, separated by commas',
  )
  .transform((pairs) => Object.fromEntries(pairs.map((pair) => splitPair(pair))))

const isHeaderValue = (pair: string) => /^[\x20-\x7e]*$/.test(splitPair(pair)[1])

function splitPair(pair: string): [name: string, value: string] {
  const end = pair.indexOf('=')
  return [pair.slice(0, end).toLowerCase(), decodeURIComponent(pair.slice(end + 1))]
}

export const filePathSchema = z.string().min(1, 'must name a file')
export const nonEmptyTextSchema = z.string().min(1, 'must not be empty')

/** Headers that browsers and other servers set, too. So their values do not prove who signed in. */
const takenHeaders =
  /^(host|origin|cookie|referer|user-agent|connection|content-.*|accept.*|sec-.*|x-forwarded-(for|host|proto))$/

/** The name of a header that only the proxy sets, in lower case. */
export const proxyHeaderNameSchema = z
  .string()
  .regex(/^[\w!#$%&'*+.^`|~-]+$/, 'must be the name of a header')
  .transform((text) => text.toLowerCase())
  .refine((text) => !takenHeaders.test(text), 'must be a header that only the proxy sets')

/** Refuses a network of all addresses. */
export const addressesAndNetworksSchema = z
  .string()
  .transform((text) => text.split(',').map((each) => each.trim()))
  .refine((all) => all.every(isNet), 'must be addresses such as 10.0.0.7 or networks such as 10.0.0.0/28')
  .refine((all) => !all.some((each) => each.endsWith('/0')), 'must not allow every address')

/** Host names, separated by commas. Turns the names to lower case. */
export const hostNamesSchema = z
  .string()
  .transform((text) => text.split(',').map((each) => each.trim().toLowerCase()))
  .refine(
    (all) => all.every((each) => /^[a-z0-9_.-]+$/.test(each)),
    'must be names such as console.example, without a port',
  )

function isNet(text: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  return version !== 0 && (bits === undefined || Number(bits) <= (version === 4 ? 32 : 128))
}

/** The observations about a service that `outboxd discover` writes. */
const contractNames = [
  'expires_in',
  'bad_token',
  'submit_ok',
  'order_ok',
  'status_unknown',
  'order_status_unknown',
  'unknown_path',
  'other_method',
  'e001',
  'e002',
  'rate_remaining',
] as const
export type Contract = Readonly<Partial<Record<(typeof contractNames)[number], string>>>

/** Pairs `name=value`, separated by blanks. */
export const discoveredContractSchema = z
  .string()
  .transform((text) => text.trim().split(/\s+/))
  .refine(
    (pairs) => pairs.every(isContractPair),
    'must be pairs name=value as `outboxd discover --write FILE` writes them',
  )
  .transform((pairs): Contract => Object.fromEntries(pairs.map((pair) => pair.split('='))))

function isContractPair(pair: string): boolean {
  const [, name] = /^(\w+)=\w+$/.exec(pair) ?? []
  return contractNames.some((each) => each === name)
}
