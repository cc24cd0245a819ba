import { secretSpellings } from '../service/client.ts'
import { redactAndBoundText, redactedMark } from '../service/readJson.ts'
import { accessTokenIn, type Exchange } from './exchange.ts'

/**
 * Makes an HTTP archive 1.2.
 * @param exchanges masked
 * @see http://www.softwareishard.com/blog/har-12-spec/
 */
export function harOf(exchanges: readonly Exchange[], version: string): unknown {
  return { log: { version: '1.2', creator: { name: 'outboxd discover', version }, entries: exchanges.map(entryOf) } }
}

function entryOf({ of, method, origin, path, headers, body, startedAtMs, answer }: Exchange): unknown {
  const timeMs = Math.round(answer.tookMs * 10) / 10
  return {
    startedDateTime: new Date(startedAtMs).toISOString(),
    time: timeMs,
    comment: of,
    request: {
      method,
      url: origin + path,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: namesAndValues(headers),
      queryString: [],
      ...(body === null ? {} : { postData: { mimeType: headers['content-type'] ?? '', text: body } }),
      headersSize: -1,
      bodySize: body === null ? 0 : Buffer.byteLength(body),
    },
    response: responseOf(answer),
    cache: {},
    timings: { send: 0, wait: timeMs, receive: 0 },
  }
}

function responseOf(answer: Exchange['answer']): unknown {
  const empty = { httpVersion: 'HTTP/1.1', statusText: '', cookies: [], headersSize: -1 }
  if (answer.kind === 'no-answer') {
    const content = { size: 0, mimeType: 'x-unknown' }
    return { ...empty, status: 0, headers: [], content, redirectURL: '', bodySize: -1, comment: answer.detail }
  }
  const { status, headers, text } = answer
  const content = { size: Buffer.byteLength(text), mimeType: headers['content-type'] ?? 'x-unknown', text }
  return {
    ...empty,
    status,
    headers: namesAndValues(headers),
    content,
    redirectURL: headers.location ?? '',
    bodySize: Buffer.byteLength(text),
  }
}

const namesAndValues = (headers: Exchange['headers']) =>
  Object.entries(headers).map(([name, value]) => ({ name, value }))

/** @param exchange masked */
export function exchangeText({ of, method, origin, path, headers, body, startedAtMs, answer }: Exchange): string {
  const asked = [`${method} ${origin}${path}`, ...headerLines(headers), '', body ?? '']
  const head = `# ${of}, ${new Date(startedAtMs).toISOString()}\n\n`
  return `${head}${asked.join('\n').trimEnd()}\n\n${'-'.repeat(40)}\n\n${answerText(answer)}\n`
}

function answerText(answer: Exchange['answer']): string {
  const took = `after ${Math.round(answer.tookMs)} ms`
  if (answer.kind === 'no-answer') return `no answer ${took}: ${answer.detail}`
  const partly = answer.unreadable === null ? '' : ` (${answer.unreadable})`
  return [`${answer.status} ${took}${partly}`, ...headerLines(answer.headers), '', answer.text].join('\n')
}

const headerLines = (headers: Exchange['headers']) =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`)

/**
 * Hides tokens, secrets and cookies, also if an answer repeats them.
 * @param secrets all but tokens
 */
export function maskExchanges(exchanges: readonly Exchange[], secrets: readonly string[]): Exchange[] {
  const tokens = exchanges
    .flatMap(({ accessToken, answer }) => [accessToken, accessTokenIn(answer)])
    .filter((token) => token !== null)
  const hidden = [...new Set([...secrets, ...tokens])]
  return exchanges.map((exchange) => maskOne(exchange, (text) => hideSecrets(text, hidden)))
}

/** Hides these secrets in every spelling, and fields that are named like a secret. */
export const hideSecrets = (text: string, secrets: readonly string[]): string =>
  hideNamed(redactAndBoundText(text, secretSpellings(secrets)))

function maskOne(exchange: Exchange, mask: (text: string) => string): Exchange {
  const { answer } = exchange
  return {
    ...exchange,
    path: mask(exchange.path),
    headers: maskHeaders(exchange.headers, mask),
    body: exchange.body === null ? null : mask(exchange.body),
    accessToken: null,
    answer:
      answer.kind === 'no-answer'
        ? answer
        : { ...answer, headers: maskHeaders(answer.headers, mask), text: mask(answer.text), json: null },
  }
}

const hiddenHeaders: ReadonlySet<string> = new Set(['authorization', 'cookie', 'set-cookie', 'proxy-authorization'])

function maskHeaders(headers: Exchange['headers'], mask: (text: string) => string): Exchange['headers'] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, hiddenHeaders.has(name) ? redactedMark : mask(value)]),
  )
}

/** Hides fields that are named like a secret, such as a refresh token, in JSON and in forms. */
function hideNamed(text: string): string {
  return text
    .replace(
      /("(?:\w*_token|\w*Token|\w*secret|\w*Secret|password|assertion)"\s*:\s*)"(?:[^"\\]|\\.)*"/g,
      `$1"${redactedMark}"`,
    )
    .replace(/\b((?:client_secret|client_assertion|password|refresh_token)=)[^&\s]*/g, `$1${redactedMark}`)
}
