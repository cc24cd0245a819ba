// A stamp has three words: its kind, who the row is, what the row holds. Behind colons the first word names the
// descriptions that made the second and the third (stampSql.ts).
const word = (stamp: string, n: number) => `split_part(${stamp}, ' ', ${n})`
const kind = (stamp: string) => `split_part(${word(stamp, 1)}, ':', 1)`

/**
 * SQL: the words agree, or two descriptions made them, so that they cannot be compared. An old stamp does not name
 * its description.
 */
function agree(one: string, other: string, n: 2 | 3): string {
  const [its, others] = [one, other].map((stamp) => `split_part(${word(stamp, 1)}, ':', ${n})`)
  return `(${word(one, n)} = ${word(other, n)} or ${its} <> '' and ${others} <> '' and ${its} <> ${others})`
}

/** SQL: nothing in two stamps of one kind says that they are of two rows, or of an edited row. */
export const stampsAgreeSql = (one: string, other: string): string =>
  `(${agree(one, other, 2)} and ${agree(one, other, 3)})`

export const sameStampKindSql = (one: string, other: string): string => `${kind(one)} = ${kind(other)}`

/**
 * SQL: the row could not be read when the submission `s` was captured, so the ledger has neither its type nor its
 * key.
 */
export const wasUnreadableSql = `(s.row_stamp is null and s.type = '')`

/**
 * SQL: the submission `s` was captured from the row `r` (`stamp`, `"createdAt"`). Stamps of two kinds cannot be
 * compared, because the description has got a created_at since. A submission without a stamp is compared by its
 * time of recording, an unread one only by its id.
 */
export const isSameRowSql = `case
  when ${wasUnreadableSql} then true
  when ${sameStampKindSql('s.row_stamp', 'r.stamp')} then ${stampsAgreeSql('s.row_stamp', 'r.stamp')}
  when s.row_stamp is null and r."createdAt" is not null then s.recorded_at = r."createdAt"::timestamptz
  else true end`

/** SQL: two stamps differ in the contents only: an edited row, unless it is a different one that looks alike. */
export const differsInContentSql = (one: string, other: string): string =>
  `coalesce(${kind(one)} in ('content', 'both') and ${sameStampKindSql(one, other)} and ${agree(one, other, 2)} and not ${agree(one, other, 3)}, false)`

/**
 * SQL: an edit by the ERP explains how two stamps differ: no time of recording contradicts it. A hash of type and
 * key may differ, too, unless a time stands beside it.
 */
export const mayBeEditedSql = (one: string, other: string): string =>
  `coalesce(${sameStampKindSql(one, other)} and (${kind(one)} = 'content' and not ${stampsAgreeSql(one, other)} or ${differsInContentSql(one, other)}), false)`

/** SQL: an operator has said that the ERP edits rows after they were taken. */
export const rowsAreEditedSql = '(select rows_edited from outboxd.outbox where is_current)'

/** SQL: a row in this state may be edited without a conflict, because `replay --refresh` sends its correction. */
export const awaitsRepairSql = (state: string): string => `${state} in ('failed', 'rejected')`

/** SQL: the row `r` was edited since `s` was captured, and that is not a conflict. */
export const isAcceptedEditSql = `(${mayBeEditedSql('s.row_stamp', 'r.stamp')} and (${awaitsRepairSql('s.state')} or ${rowsAreEditedSql}))`

/** Whether two stamps by one description say different times of recording. */
export function stampTimesDiffer(one: string, other: string): boolean {
  const [[its = '', at], [others = '', otherAt]] = [one.split(' '), other.split(' ')]
  const isByTime = [its, others].every((made) => made.split(':')[0] === 'at')
  return isByTime && at !== otherAt && (its === others || !its.includes(':') || !others.includes(':'))
}

/** A row with the id of a different row that the ledger knows. */
export interface RowConflict {
  outboxId: string
  /** What was seen, without the client's data. */
  detail: string
}

/** The subject of a conflict of the whole table. */
export const wholeTableSubject = ''

/** How long a row in conflict is left alone. */
export const conflictRetryMs = 600_000

export const differentRowMessage = (state: string, recorded: string): string =>
  `the row differs from the one that was taken under this id (recorded ${recorded}, its record is ${state}). The row is not sent, and not told the outcome`

export const duplicateIdMessage =
  'two rows of the outbox have this id: neither is sent. Make the id unique, then correct one'

/** @param examples ids of some of the rows */
export const editedRowsMessage = (rows: number, examples: readonly string[]): string =>
  `${rows === 1 ? '1 row with an id that the ledger knows has' : `${rows} rows with ids that the ledger knows have`} other contents than when it was taken (${examples.join(', ')}). What was edited is not sent. For a record that is under way this ends with the record; if it is then rejected or failed, outboxd replay --refresh sends the row as it is. Otherwise, if the ERP edits rows after they were taken, or outbox.yaml was changed: outboxd adopt --same, once. If their ids began anew: outboxd adopt --new. A created_at in the description tells the one from the other`

/** The ids that come more than once. */
export function findDuplicates(ids: readonly string[]): Set<string> {
  const seen = new Set<string>()
  return new Set(ids.filter((id) => seen.size === seen.add(id).size))
}
