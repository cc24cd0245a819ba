import {
  type ColumnName,
  type ColumnValueLifetime,
  type KeptColumnValues,
  submissionColumns,
} from '../model/submission.ts'
import type { Database } from '../postgres/database.ts'

const sqlTypes = { count: 'int', flag: 'boolean', uuid: 'uuid', text: 'text', ms: 'float8' }
const empty = { count: 0, flag: false, text: null, ms: null }

const names = Object.keys(submissionColumns) as ColumnName[]
const namesOf = (...lasting: ColumnValueLifetime[]) =>
  names.filter((name) => lasting.includes(submissionColumns[name].lasts))
export const columnsKeptAcrossSteps = namesOf('transaction', 'start', 'submission') as (keyof KeptColumnValues)[]

/** Such as repeated_after_401 for `repeatedAfter401`. */
const columnOf = (name: ColumnName) => name.replace(/[A-Z]|\d+/g, (part) => `_${part.toLowerCase()}`)

export const selectColumnsSql = (submissionAlias: string, columnNames: readonly ColumnName[]): string =>
  columnNames
    .map((name) => {
      const type = submissionColumns[name].holds === 'ms' ? '::float8' : ''
      return `${submissionAlias}.${columnOf(name)}${type} as "${name}"`
    })
    .join(', ')

/** Without the body, which may be large. */
export const submissionColumnsSql = `
  s.id, s.outbox_id as "outboxId", s.type, s.key, s.resource, s.tracked, s.sends_own_id as "sendsOwnId",
  extract(epoch from s.recorded_at)::float8 * 1000 as "recordedMs", s.state, s.revision, s.attempt, s.claim_id as "claimId",
  ${selectColumnsSql('s', columnsKeptAcrossSteps)},
  s.id_by_person as "idByPerson", s.probing,
  coalesce(extract(epoch from clock_timestamp() - coalesce(s.accepted_at, s.sent_at)), 0)::float8 * 1000 as "ageMs",
  extract(epoch from clock_timestamp() - s.unknown_since)::float8 * 1000 as "unknownForMs"`

export const recordsetFieldsSql = names.map((name) => `"${name}" ${sqlTypes[submissionColumns[name].holds]}`).join(', ')

export const assignColumnsSql = (recordAlias: string): string =>
  names.map((name) => `${columnOf(name)} = ${recordAlias}."${name}"`).join(', ')

export const emptyStepColumnValues: Record<string, unknown> = Object.fromEntries(
  namesOf('step').map((name) => [name, emptyOf(name)]),
)

/** Empties columns that last no longer than a step, transaction or start. */
export function resetColumnsByLifetimeSql(
  lifetimeMax: Exclude<ColumnValueLifetime, 'submission'>,
  replacements: Partial<Record<ColumnName, string>> = {},
): string {
  const upTo = { step: 0, transaction: 1, start: 2 }[lifetimeMax]
  const own = namesOf(...(['step', 'transaction', 'start'] as const).slice(0, upTo + 1))
  return [
    ...own.map((name) => `${columnOf(name)} = ${replacements[name] ?? emptyOf(name)}`),
    ...(upTo > 0 ? ['unknown_since = null, opened_times = 0'] : []),
  ].join(', ')
}

function emptyOf(name: ColumnName): number | boolean | null {
  const { holds } = submissionColumns[name]
  if (holds === 'uuid') throw new Error(`${name} is never empty`)
  return empty[holds]
}

/** Locks submissions in the order of their ids, to avoid deadlocks. Who changes a poll locks its record first. */
export async function lockSubmissions(db: Database, ids: readonly string[]): Promise<void> {
  await db.query('select from outboxd.submission where id = any($1::uuid[]) order by id for no key update', [ids])
}
