import { everySpelling } from '../service/client.ts'
import { cleanText, redacted } from '../service/readJson.ts'
import type { Exchange } from './exchange.ts'
import { accessTokenIn } from './samples/calls.ts'

/** The exchanges as they may be shown: no token, no secret, no cookie, whatever echoes them. Pure. @param secrets besides tokens */
export function maskExchanges(exchanges: readonly Exchange[], secrets: readonly string[]): Exchange[] {
  const tokens = exchanges
    .flatMap(({ accessToken, answer }) => [accessToken, accessTokenIn(answer)])
    .filter((token) => token !== null)
  const hidden = [...new Set([...secrets, ...tokens])]
  return exchanges.map((exchange) => maskOne(exchange, (text) => hideSecrets(text, hidden)))
}

/** A text without these secrets, however they are spelt, and without fields that are named like one. Pure. */
export const hideSecrets = (text: string, secrets: readonly string[]): string =>
  hideNamed(cleanText(text, everySpelling(secrets)))

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
    Object.entries(headers).map(([name, value]) => [name, hiddenHeaders.has(name) ? redacted : mask(value)]),
  )
}

/** Fields that are named like a secret, in JSON and in forms: a refresh token is nobody’s to see, either. */
function hideNamed(text: string): string {
  return text
    .replace(
      /("(?:\w*_token|\w*Token|\w*secret|\w*Secret|password|assertion)"\s*:\s*)"(?:[^"\\]|\\.)*"/g,
      `$1"${redacted}"`,
    )
    .replace(/\b((?:client_secret|client_assertion|password|refresh_token)=)[^&\s]*/g, `$1${redacted}`)
}
