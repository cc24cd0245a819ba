/** Statements by their first words, the longer before the shorter. */
const kinds = [
  'alter table',
  'alter index',
  'create index',
  'create trigger',
  'drop table',
  'drop trigger',
  'drop index',
  'lock table',
  'lock',
  'refresh materialized view',
  'vacuum',
  'cluster',
  'reindex',
  'truncate',
  'analyze',
  'select',
  'insert',
  'update',
  'delete',
  'merge',
  'copy',
  'fetch',
  'begin',
  'start transaction',
  'savepoint',
  'prepare transaction',
  'commit',
  'rollback',
  'set',
  'with',
  'call',
  'do',
]

/** Comments and blanks before the first word. */
const blank = /^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)*/

/**
 * What kind of statement it is, from a closed list, so that nothing of its data is ever told.
 *
 * @returns null where there is none, or our user may not see it
 */
export function statementKind(query: string | null): string | null {
  if (query === null || query === '' || query.startsWith('<insufficient privilege>')) return null
  const words = query.replace(blank, '').replace(/\s+/g, ' ').toLowerCase()
  return kinds.find((kind) => words.startsWith(kind) && !/^\w/.test(words.slice(kind.length))) ?? 'another statement'
}
