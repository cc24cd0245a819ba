/** The SQLSTATE, or the code of a connection that broke. */
export const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null | undefined)?.code

export const isLockTimeout = (error: unknown): boolean => codeOf(error) === '55P03'

/** statement_timeout, or an operator cancelled it. */
export const isStatementCanceled = (error: unknown): boolean => codeOf(error) === '57014'

/** The server takes no writes, as a standby. */
export const isReadOnlyError = (error: unknown): boolean => codeOf(error) === '25006'

export type Work = 'claim' | 'mark' | 'outcome' | 'report' | 'maintenance'

export type Blame =
  /**
   * Passes by itself: a lock, a deadlock, too little time or memory. It may be about one piece, so pieces are tried
   * one by one.
   */
  | 'moment'
  /** About this piece: what it holds, or what a trigger makes of it. */
  | 'piece'
  /** The server, a right, a missing table: each piece would fail until that is over. */
  | 'everyone'

/** A string holds for all work. */
type Row = Blame | Record<Work, Blame>

/**
 * About everyone, unless a statement wrote to the client's table: its triggers may raise any state for one row, and
 * the rows were locked before, so server and rights are not to blame.
 */
const ofTable: Row = { claim: 'everyone', mark: 'piece', outcome: 'everyone', report: 'piece', maintenance: 'everyone' }

/**
 * The classes of SQLSTATE, and whole states that differ from their class (PostgreSQL 18, appendix A). A state that is
 * not listed is about the piece, so that it does not hold up the others.
 */
export const sqlStates: Readonly<Record<string, Row>> = {
  '00': 'piece', // success
  '01': 'piece', // warning
  '02': 'piece', // no data
  '03': 'piece', // statement not complete
  '08': ofTable, // connection
  '09': 'piece', // triggered action
  '0A': 'piece', // not supported
  '0B': 'piece', // invalid transaction initiation
  '0F': 'piece', // locator
  '0L': ofTable, // invalid grantor
  '0P': ofTable, // invalid role
  '0Z': 'piece', // diagnostics
  '10': 'piece', // XQuery
  '20': 'piece', // case not found
  '21': 'piece', // cardinality: a view's row that is there twice
  '22': 'piece', // data
  '23': 'piece', // integrity constraint
  '24': 'piece', // cursor state
  '25': ofTable, // transaction state: 25006 a standby, or a server that was made read-only
  '26': ofTable, // a prepared statement is gone
  '27': 'piece', // triggered data change: a BEFORE trigger updates the row itself
  '28': ofTable, // sign-in
  '2B': 'piece', // dependent privileges
  '2D': 'piece', // transaction termination
  '2F': 'piece', // SQL routine
  '34': 'piece', // cursor name
  '38': 'piece', // external routine
  '39': 'piece', // external routine invocation
  '3B': 'piece', // savepoint
  '3D': ofTable, // no such database
  '3F': ofTable, // no such schema
  '40': 'moment', // deadlock, serialization
  '42': ofTable, // no right, no such table or column
  '44': 'piece', // WITH CHECK OPTION of a view
  '53': ofTable, // resources: too many connections
  '53100': 'everyone', // the disk is full
  '53200': 'moment', // out of memory
  '53400': 'moment', // a limit of one statement, such as temp_file_limit
  '54': 'piece', // program limit: a value that an index cannot hold
  '55': ofTable, // not in the prerequisite state
  '55P03': 'moment', // lock_timeout
  '57': ofTable, // shutdown, crash
  '57014': 'moment', // statement_timeout
  '58': 'piece', // system error
  '58030': 'moment', // a block cannot be read, perhaps this row's
  F0: 'piece', // configuration file
  HV: 'piece', // foreign data
  P0: 'piece', // PL/pgSQL: raise
  XX: 'piece', // internal error, a damaged row
}

export function blameOfState(state: string, work: Work): Blame {
  const row = sqlStates[state] ?? sqlStates[state.slice(0, 2)] ?? 'piece'
  return typeof row === 'string' ? row : row[work]
}

/** Such as a word for a bigint. */
export function isInvalidValue(error: unknown): boolean {
  return ['22P02', '22003', '22007', '22008', '22023'].includes(String(codeOf(error)))
}
