const shape = /^E\d{3}$/
const anywhere = /\bE\d{3}\b/

/**
 * The error code of a body, wherever it is: `code`, `errorCode`, `error_code`, `error.code`, `errors[].code`, a problem
 * document (RFC 9457), or an E00n in the text. A code of the interface's own shape wins over any other, because
 * frameworks like to put a `code` of theirs beside the service's.
 *
 * @param text the body where an E00n in running text may count: empty for a success, whose ids may look like one
 * @see interface.md, 7.2: the body's shape and the mapping to HTTP statuses are not shown
 */
export function findErrorCode(json: unknown, text: string): string | null {
  const codes = codesIn(json, 0)
  return codes.find((code) => shape.test(code)) ?? anywhere.exec(text)?.[0] ?? codes[0] ?? null
}

const holders = ['code', 'errorCode', 'error_code', 'error', 'errors']

function codesIn(json: unknown, depth: number): string[] {
  if (depth > 2 || typeof json !== 'object' || json === null) return []
  if (Array.isArray(json)) return json.slice(0, 100).flatMap((one) => codesIn(one, depth + 1))
  return holders.flatMap((holder) => {
    const value: unknown = (json as Record<string, unknown>)[holder]
    return typeof value === 'string' ? plausible(value) : codesIn(value, depth + 1)
  })
}

/** A code is one word; `"error": "something went wrong"` is not one. */
function plausible(value: string): string[] {
  const code = value.trim()
  return /^[\w.:/-]{1,64}$/.test(code) ? [code] : []
}
