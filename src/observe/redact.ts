import { boundText, textCharsMax } from '../boundText.ts'

/** Enough of an error to find its place, without data. */
export interface RedactedError {
  class: string
  message: string
  /** SQLSTATE, or a system code such as ECONNREFUSED. */
  code?: string
  severity?: string
  causes?: string[]
  errors?: string[]
}

const chainMax = 5
/** Longer than our longest message, so that no secret is cut in half before it is found. */
const redactMax = 10_000

export const withheldMark = '[withheld]'

/**
 * Never throws.
 *
 * Drops Postgres' `detail`, `where` and parameters, stacks, other properties, and the text of errors that quote data.
 */
export function redactError(error: unknown): RedactedError {
  try {
    return shown(error)
  } catch {
    return { class: 'Error', message: withheldMark }
  }
}

function shown(error: unknown): RedactedError {
  if (!(error instanceof Error))
    return { class: typeof error, message: typeof error === 'string' ? redactAndCut(error) : withheldMark }
  const { code, severity } = error as { code?: unknown; severity?: unknown }
  const causes = causesOf(error)
  const errors = error instanceof AggregateError ? error.errors.slice(0, chainMax).map(className) : []
  return {
    class: className(error),
    message: quotesData(error, code) ? withheldMark : redactAndCut(error.message),
    ...(isWord(code) && { code }),
    ...(isWord(severity) && { severity }),
    ...(causes.length > 0 && { causes }),
    ...(errors.length > 0 && { errors }),
  }
}

function causesOf(error: Error): string[] {
  const classes: string[] = []
  for (let cause = error.cause; cause != null && classes.length < chainMax; cause = (cause as Error).cause)
    classes.push(className(cause))
  return classes
}

function className(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return /^[\w$]{1,60}$/.test(error.name) ? error.name : 'Error'
}

/**
 * True for errors of JSON.parse, which quotes its text, of Postgres class 22, which quotes values, and of P0, which
 * triggers raise.
 */
function quotesData(error: Error, code: unknown): boolean {
  return error instanceof SyntaxError || (typeof code === 'string' && /^(22|P0)[0-9A-Z]{3}$/.test(code))
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Z0-9_]{1,40}$/.test(value)
}

/**
 * Removes what may be credentials: an address's user, password and query, Bearer and Basic tokens, JWTs, and what
 * follows `password=` and similar words.
 */
export function redactAndCut(text: string): string {
  const redacted = patterns.reduce(
    (rest, [pattern, instead]) => rest.replace(pattern, instead),
    text.slice(0, redactMax),
  )
  return boundText(redacted, textCharsMax.message)
}

const gone = '[redacted]'
const patterns: readonly (readonly [RegExp, string])[] = [
  // Up to the last @ of the line, because a password may contain spaces, slashes and @.
  [/:\/\/[^\n]*@/g, `://${gone}@`],
  [/(:\/\/[^\s?"'<>]+)\?[^\s"'<>]*/g, `$1?${gone}`],
  [/\b(bearer|basic)[\s:]+[\w.~+/=-]+/gi, `$1 ${gone}`],
  [/\beyJ[\w-]+(\.[\w-]*)*/g, gone],
  [
    /\b(\w*(?:password|passwd|pwd|secret|token|authorization|api[_-]?key|client_id))\b["']?\s*[=:]\s*("[^"\n]*"?|'[^'\n]*'?|[^\s,;&}]+)/gi,
    `$1=${gone}`,
  ],
]

/** Describes an error without data, with its code. */
export function failureMessage(error: unknown): string {
  const { message, code, class: name } = redactError(error)
  const said =
    message === withheldMark
      ? 'the database refused a value. Its message is withheld, because it may quote data: look into the log of the database'
      : message || name
  return code === undefined ? said : `${said} (${code})`
}
