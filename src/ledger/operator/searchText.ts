import { systemClock } from '../../clock.ts'
import type { Database } from '../../postgres/database.ts'
import { type SubmissionFilter, selectIds } from './selectSubmissions.ts'

/** How far a search goes. */
export interface SearchBounds {
  rowsMax: number
  timeMaxMs: number
}

/** What a search found, and how far it went. */
export interface TextSearch {
  ids: string[]
  lookedAt: number
  /** There are more that the filter matches, and nobody has looked at them. */
  isCut: boolean
}

/** Payloads can be large: so many are read by one statement, which has an end of its own. */
const rowsAtOnce = 200

/**
 * Looks for a text in the payloads, bodies and keys of those that the filter matches, newest in their state first. Upper
 * and lower case count as the same. There is no index on what payloads hold, so that a search has an end.
 */
export async function searchText(
  db: Database,
  filter: SubmissionFilter,
  text: string,
  { rowsMax, timeMaxMs }: SearchBounds,
): Promise<TextSearch> {
  const elapsedMs = systemClock.stopwatch()
  const candidates = await selectIds(db, filter, rowsMax + 1)
  const search: TextSearch = { ids: [], lookedAt: 0, isCut: false }
  const last = Math.min(candidates.length, rowsMax)
  while (search.lookedAt < last && elapsedMs() < timeMaxMs) {
    const slice = candidates.slice(search.lookedAt, Math.min(search.lookedAt + rowsAtOnce, last))
    search.ids.push(...(await findContaining(db, slice, patternsOf(text))))
    search.lookedAt += slice.length
  }
  return { ...search, isCut: search.lookedAt < candidates.length }
}

async function findContaining(db: Database, ids: readonly string[], patterns: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select s.id from outboxd.submission s where s.id = any($1::uuid[])
       and (s.key ilike any($2::text[]) or s.payload ilike any($2) or s.body ilike any($2))`,
    [ids, patterns],
  )
  return rows.map(({ id }) => id)
}

/** A text as it stands, and as JSON may write it: with escapes, and in ASCII alone. Pure. */
export function patternsOf(text: string): string[] {
  const escaped = JSON.stringify(text).slice(1, -1)
  const ascii = escaped.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [...new Set([text, escaped, ascii])].map((each) => `%${each.replace(/[\\%_]/g, '\\$&')}%`)
}
