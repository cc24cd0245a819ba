import type { Amounts } from '../../model/outbox.ts'

const usual = 'EUR'
const charsMax = 64

/**
 * All currencies that a request's amounts may have, such as `EUR+USD`: also EUR (docs/reference/interface.md, 2.5) if only an
 * inner part names one. ASCII, because a ledger's encoding may lack other characters.
 */
export function readCurrency(body: string | null, amounts: Amounts | null): string | null {
  if (body === null) return null
  const hasAmounts = Object.keys(amounts ?? {}).length > 0
  if (!/currency/i.test(body)) return hasAmounts ? usual : null
  const request = tryParse(body) as { data?: unknown } | null
  const named = new Set(currenciesIn(request, 'inside'))
  const isCertain = [request, request?.data].some((part) => !currenciesIn(part, 'here').next().done)
  if (hasAmounts && !isCertain) named.add(usual)
  if (named.size === 0) return null
  const label = [...named]
    .toSorted()
    .join('+')
    .replace(/[^\x20-\x7e]/g, '?')
  return label.length > charsMax ? `${label.slice(0, charsMax - 3)}...` : label
}

/** Recursion is safe: payloads have at most 100 levels. */
function* currenciesIn(value: unknown, depth: 'here' | 'inside', isCurrency = false): Generator<string> {
  if (typeof value === 'string' && isCurrency && value.trim() !== '') yield value.trim().toUpperCase()
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    const names = /^currency(_?code)?$/i.test(name) || (isCurrency && (name === 'code' || Array.isArray(value)))
    if (names || depth === 'inside') yield* currenciesIn(member, depth, names)
  }
}

function tryParse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
