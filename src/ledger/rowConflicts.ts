// A stamp has three words: its kind, the row's identity, and a hash of its contents. After colons, the first word has
// digests of the columns that made the other words (rowExpressions.ts).
const word = (stamp: string, n: number) => `split_part(${stamp}, ' ', ${n})`
const kind = (stamp: string) => `split_part(${word(stamp, 1)}, ':', 1)`

/** True if the words `n` of two stamps are equal, or come from different columns and cannot be compared. */
function agree(one: string, other: string, n: 2 | 3): string {
  const [its, others] = [one, other].map((stamp) => `split_part(${word(stamp, 1)}, ':', ${n})`)
  return `(${word(one, n)} = ${word(other, n)} or ${its} <> ${others})`
}

export const stampsMayAgreeSql = (one: string, other: string): string =>
  `(${agree(one, other, 2)} and ${agree(one, other, 3)})`

export const haveSameStampKindSql = (one: string, other: string): string => `${kind(one)} = ${kind(other)}`

/** True if submission `s` was captured without its type and key. */
const wasRowUnreadableSql = `(s.row_stamp is null and s.type = '')`

/**
 * True if submission `s` was captured from row `r` (`stamp`, `"createdAt"`). Also true if the stamps have different
 * kinds, which cannot be compared: `created_at` was added to outbox.yaml after the capture.
 */
export const mayBeSameRowSql = `case
  when ${wasRowUnreadableSql} then true
  when ${haveSameStampKindSql('s.row_stamp', 'r.stamp')} then ${stampsMayAgreeSql('s.row_stamp', 'r.stamp')}
  else true end`

/** True if only the contents differ: the row was edited, or a different row has the same id and time. */
export const stampsDifferInContentSql = (one: string, other: string): string =>
  `coalesce(${kind(one)} in ('content', 'both') and ${haveSameStampKindSql(one, other)} and ${agree(one, other, 2)} and not ${agree(one, other, 3)}, false)`

/** True if the stamps differ and an edit by the ERP may be the reason. Creation times do not contradict that. */
export const stampsMayDifferByEditSql = (one: string, other: string): string =>
  `coalesce(${haveSameStampKindSql(one, other)} and (${kind(one)} = 'content' and not ${stampsMayAgreeSql(one, other)} or ${stampsDifferInContentSql(one, other)}), false)`

export const canErpEditRowsSql = '(select rows_edited from outboxd.outbox where is_current)'

/** True if an edited row is not a conflict in this state, because `replay --refresh` sends that row. */
export const isReplayableStateSql = (stateSql: string): string => `${stateSql} in ('failed', 'rejected')`

export const isAcceptedEditSql = `(${stampsMayDifferByEditSql('s.row_stamp', 'r.stamp')} and (${isReplayableStateSql('s.state')} or ${canErpEditRowsSql}))`

/**
 * True if both stamps are creation times, and they differ. False if outbox.yaml described `created_at`
 * differently for the two, because such times cannot be compared.
 */
export function stampTimesDiffer(one: string, other: string): boolean {
  const [[its = '', at], [others = '', otherAt]] = [one.split(' '), other.split(' ')]
  const isByTime = [its, others].every((made) => made.split(':')[0] === 'at')
  return isByTime && at !== otherAt && its === others
}

export interface RowConflict {
  outboxId: string
  detail: string
}

export const tableProblemSubject = ''

export const conflictRetryMs = 600_000
/** The query for new rows lists their ids, so they must be few. */
export const conflictsMax = 1_000

export const differentRowMessage = (state: string, recorded: string): string =>
  `the row differs from the row that was captured under this id (created ${recorded}, its record is ${state}). The row is not sent, and nothing is written back to it`

export const duplicateIdMessage = 'two rows of the outbox have this id, so neither is sent. Make their ids unique'

export const editedRowsMessage = (rows: number, examples: readonly string[]): string =>
  `${rows === 1 ? '1 row has' : `${rows} rows have`} changed since the capture (${examples.join(', ')}), and the change is not sent. If the ERP edits rows, or outbox.yaml was changed, run \`outboxd adopt --same\` once. If the ids started again, run \`outboxd adopt --new\``

export function findRepeatedIds(ids: readonly string[]): Set<string> {
  const seen = new Set<string>()
  return new Set(ids.filter((id) => seen.size === seen.add(id).size))
}
