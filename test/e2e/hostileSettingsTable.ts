/**
 * Settings of a role or a database (`alter role … set`, `alter database … set`), each with the value that hostileSettings.test.ts
 * gives to outboxd's role. Two are left out:
 *
 * - `default_transaction_read_only` is left alone, because a provider sets it if the disk is full; `status` says so.
 * - `role` is followed: rights are asked of the role that it names.
 */

/** outboxd sets its own value. */
export const overriddenSettings = {
  DateStyle: 'German, DMY', // times are read as text
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kathmandu', // outboxd needs UTC
  bytea_output: 'escape',
  extra_float_digits: '-15', // milliseconds would lose digits
  array_nulls: 'off', // NULL in a list would become a word
  client_min_messages: 'error', // a COMMIT warns if its standby may lack it
  default_transaction_deferrable: 'on',
  default_transaction_isolation: 'serializable', // fences read what other sessions wrote
  exit_on_error: 'on',
  lock_timeout: '1ms',
  statement_timeout: '300ms', // 20 s; no limit for `migrate`
  idle_in_transaction_session_timeout: '300ms', // 10 s
  idle_session_timeout: '300ms',
  transaction_timeout: '300ms',
  quote_all_identifiers: 'on', // structures are compared as text
  row_security: 'off', // `check` names policies that hide rows
  session_replication_role: 'replica', // triggers must run, or outboxd refuses to start
  standard_conforming_strings: 'off',
  transform_null_equals: 'on',
  synchronous_commit: 'off', // raised to `local` for what must last
  search_path: 'public, pg_catalog', // the role’s own path finds the outbox (docs/why/security.md, "Your code on the outbox")
  enable_seqscan: 'on', // for the daemon, as sorts and bitmap scans
  jit: 'on', // off in each session
  default_tablespace: 'pg_default', // partitioned tables take only the database’s
} as const

/** These are harmless. */
export const harmlessSettings = {
  backslash_quote: 'off',
  escape_string_warning: 'off',
  lc_messages: 'C', // codes are read, not messages
  lc_monetary: 'C',
  lc_numeric: 'C',
  lc_time: 'C',
  xmlbinary: 'hex',
  xmloption: 'document',

  // These six are slower at most.
  plan_cache_mode: 'force_generic_plan',
  work_mem: '64kB',
  enable_indexscan: 'off',
  enable_nestloop: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',

  check_function_bodies: 'off',
  temp_tablespaces: '',
  default_table_access_method: 'heap',
  default_toast_compression: 'pglz',
  deadlock_timeout: '10ms', // deadlocks are tried again
  track_activities: 'off', // lock holders are named without their statement
  log_statement: 'none', // with `all` the server’s log has payloads
} as const
