/** Returns the SQLSTATE, or the code of a connection that broke. */
export const errorCodeOf = (error: unknown): unknown => (error as { code?: unknown } | null | undefined)?.code

export const isLockTimeout = (error: unknown): boolean => errorCodeOf(error) === '55P03'

export const isStatementCanceled = (error: unknown): boolean => errorCodeOf(error) === '57014'

export const isReadOnlyError = (error: unknown): boolean => errorCodeOf(error) === '25006'

export type WorkKind = 'claim' | 'mark' | 'outcome' | 'maintenance'

/** What to blame for an error. A piece is a row or a record on which the statement worked. */
export type DatabaseErrorBlame =
  /** The error passes by itself. One piece may be the cause, so pieces are tried one by one. */
  | 'moment'
  /** One piece: its data, or a trigger that it fires. */
  | 'piece'
  /** The server, a permission, or a missing table: each piece would fail. */
  | 'everyone'

type Row = DatabaseErrorBlame | Record<WorkKind, DatabaseErrorBlame>

/**
 * Blames the piece if a statement wrote to the client's table, because the table's triggers may raise any state for one
 * row.
 */
const ofTable: Row = { claim: 'everyone', mark: 'piece', outcome: 'everyone', maintenance: 'everyone' }

/**
 * Never gives up an outcome for an error that may be the whole server's: it is written when another write passes. The
 * texts of outcomes are bounded, so an index can hold them.
 */
const perhapsOfServer: Row = { claim: 'piece', mark: 'piece', outcome: 'moment', maintenance: 'piece' }

/**
 * Classes of SQLSTATE, and states that differ from their class (PostgreSQL 18, appendix A), that may blame something
 * else than the piece: its data, a constraint, a trigger. An unknown state blames the piece, so that it does not hold up
 * the others.
 */
export const blameBySqlState: Readonly<Record<string, Row>> = {
  '08': ofTable, // connection
  '0L': ofTable, // invalid grantor
  '0P': ofTable, // invalid role
  '25': ofTable, // 25006: a standby, or a read-only server
  '26': ofTable, // a prepared statement is gone
  '28': ofTable, // sign-in
  '3D': ofTable, // no such database
  '3F': ofTable, // no such schema
  '40': 'moment', // deadlock, serialization
  '42': ofTable, // no right, no such table or column
  '53': ofTable, // too many connections
  '53100': 'everyone', // the disk is full
  '53200': 'moment', // out of memory
  '53400': 'moment', // a limit such as temp_file_limit
  '54': perhapsOfServer, // a value that an index cannot hold, or a limit of the server
  '55': ofTable, // not in the prerequisite state
  '55P03': 'moment', // lock_timeout
  '57': ofTable, // shutdown, crash
  '57014': 'moment', // statement_timeout
  '58': perhapsOfServer, // 58P01: a file of the server is missing, as after an upgrade on disk
  '58030': 'moment', // a block cannot be read, perhaps of this row
  XX: perhapsOfServer, // internal error, or a damaged row
}

export function classifySqlState(state: string, work: WorkKind): DatabaseErrorBlame {
  const row = blameBySqlState[state] ?? blameBySqlState[state.slice(0, 2)] ?? 'piece'
  return typeof row === 'string' ? row : row[work]
}

/** True if the database cannot hold a character, or a text is no JSON for it. */
export function isTextRefused(error: unknown): boolean {
  return ['22021', '22P02', '22P05'].includes(String(errorCodeOf(error)))
}

export function isInvalidValueError(error: unknown): boolean {
  return ['22P02', '22003', '22007', '22008', '22023'].includes(String(errorCodeOf(error)))
}
