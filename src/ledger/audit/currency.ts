import { boundText, textCharsMax } from '../../boundText.ts'
import type { Amounts } from '../../model.ts'

/** All currencies that a request names at any depth, such as `EUR+USD`. By default EUR (docs/reference/interface.md, 2.5). */
export function readCurrency(body: string | null, amounts: Amounts | null): string | null {
  if (body === null) return null
  const named = [...new Set(currenciesIn(tryParse(body), false))].toSorted()
  if (named.length > 0) return boundText(named.join('+'), textCharsMax.code)
  return Object.keys(amounts ?? {}).length > 0 ? 'EUR' : null
}

/** Recursion is safe: payloads have at most 100 levels. */
function* currenciesIn(value: unknown, isCurrency: boolean): Generator<string> {
  if (typeof value === 'string' && isCurrency && value.trim() !== '') yield value.trim()
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value))
    yield* currenciesIn(member, /^currency(_?code)?$/i.test(name) || (isCurrency && name === 'code'))
}

function tryParse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
