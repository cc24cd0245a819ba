import { compileSecrets, redactAndBoundText, redactedMark } from '../service/redactSecrets.ts'
import { accessTokenIn, type Exchange } from './exchange.ts'

/** @param exchange from `maskExchanges` */
export function formatMaskedExchange({
  purpose,
  method,
  origin,
  path,
  headers,
  body,
  startedAtMs,
  answer,
}: Exchange): string {
  const took = `after ${Math.round(answer.tookMs)} ms`
  return [
    `# ${purpose}, ${new Date(startedAtMs).toISOString()}`,
    '',
    ...[`${method} ${origin}${path}`, ...headerLines(headers), '', body ?? ''],
    ...['', '-'.repeat(40), ''],
    ...(answer.kind === 'no-answer'
      ? [`no answer ${took}: ${answer.detail}`]
      : [`${answer.status} ${took} ${answer.unreadable ?? ''}`, ...headerLines(answer.headers), '', answer.text]),
    '',
  ].join('\n')
}

const headerLines = (headers: Exchange['headers']) =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`)

/**
 * Hides tokens, secrets and cookies, also in answers that repeat them.
 * @param secrets all except access tokens
 */
export function maskExchanges(exchanges: readonly Exchange[], secrets: readonly string[]): Exchange[] {
  const tokens = exchanges
    .flatMap(({ accessToken, answer }) => [accessToken, accessTokenIn(answer)])
    .filter((token) => token !== null)
  const hidden = [...new Set([...secrets, ...tokens])]
  return exchanges.map((exchange) => maskOne(exchange, (text) => hideSecrets(text, hidden)))
}

/** Hides these secrets in every spelling, and values of fields that are named like a secret. */
export const hideSecrets = (text: string, secrets: readonly string[]): string =>
  hideNamed(redactAndBoundText(text, compileSecrets(secrets)))

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

/** Works on JSON and forms. */
function hideNamed(text: string): string {
  return text
    .replace(
      /("(?:\w*_token|\w*Token|\w*secret|\w*Secret|password|assertion)"\s*:\s*)"(?:[^"\\]|\\.)*"/g,
      `$1"${redactedMark}"`,
    )
    .replace(/\b((?:client_secret|client_assertion|password|refresh_token)=)[^&\s]*/g, `$1${redactedMark}`)
}
