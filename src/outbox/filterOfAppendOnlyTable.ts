/**
 * Says what a filter has besides comparisons of columns with constants: `now()`, or a query. Null if it has nothing
 * else.
 */
export function findFilterFault(filter: string): string | null {
  const tokens = [...filter.matchAll(token)].map(([text]) => text).filter((text) => !/^(\s|--)/.test(text))
  for (const [i, text] of tokens.entries()) {
    const isName = /^[\p{L}_]/u.test(text)
    if (isName && forbiddenWords.has(text.toLowerCase())) return text
    if (isName && tokens[i + 1] === '(' && !wordsBeforeBracket.has(text.toLowerCase())) return `${text}()`
    if (text.startsWith('"') && tokens[i + 1] === '(') return `${text}()`
    if (/^'(now|today|tomorrow|yesterday)'$/i.test(text)) return text
    if (!isName && !allowed.test(text)) return text
  }
  return null
}

/** A space, comment, text, quoted name, word, number, cast, comparison, or any other character. */
const token = /\s+|--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*|\d+(?:\.\d+)?|::|<>|!=|<=|>=|[\s\S]/gu

const allowed = /^(?:'[\s\S]*'|"[\s\S]*"|\d+(?:\.\d+)?|::|<>|!=|<=|>=|[=<>(),.[\]-])$/

const wordsBeforeBracket = new Set(['and', 'or', 'not', 'in', 'any', 'all', 'varchar', 'numeric', 'char', 'array'])

const forbiddenWords = new Set([
  ...['select', 'case', 'exists', 'with', 'now'],
  ...['current_date', 'current_time', 'current_timestamp', 'localtime', 'localtimestamp'],
  ...['current_user', 'session_user', 'user', 'current_role', 'current_schema', 'current_catalog'],
])
