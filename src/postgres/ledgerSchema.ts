/**
 * The ledger's schema, which LEDGER_SCHEMA names. Statements in the source name the default schema, so that they can be
 * pasted into psql. A session of a ledger with another schema replaces that name in the text of each statement:
 *
 *     outboxd.submission    ->  partner2.submission
 *     'outboxd_jobs'::name  ->  'partner2_jobs'::name
 */
export const defaultLedgerSchema = 'outboxd'

/** What LEDGER_SCHEMA may be: a name that needs no quotes, with room for `_jobs`, and that is not another ledger's schema of jobs. */
export const ledgerSchemaPattern = /^(?!.*_jobs$)[a-z][a-z0-9_]{0,40}$/

const parameter = 'ledger_schema'
const givenParameter = new RegExp(`[?&]${parameter}=([a-z0-9_]+)`)

/** Adds the schema to a database's address, so that every session of this address knows it. */
export function withLedgerSchema(url: string, schema: string): string {
  if (schema === defaultLedgerSchema) return url
  return `${url}${url.includes('?') ? '&' : '?'}${parameter}=${schema}`
}

/** The ledger's schema, for messages and pg-boss: our statements name the default one. */
export function ledgerSchemaOf(url: string): string {
  const [, schema] = givenParameter.exec(url) ?? []
  return schema ?? defaultLedgerSchema
}

/** A session's application_name, which names the ledger's schema unless that is the default. */
export function sessionNameOf(url: string, name: string): string {
  const schema = ledgerSchemaOf(url)
  return schema === defaultLedgerSchema ? name : `${name} (${schema})`
}

/**
 * Selects the names that sessions of this ledger have, for default names in a parameter. The constant with the cast is
 * renamed, the other one is not.
 */
export const sessionNamesOfLedgerSql = (namesSql: string): string =>
  `(select case when 'outboxd'::name = 'outboxd' then name else name || ' (' || 'outboxd'::name::text || ')' end from unnest(${namesSql}::text[]) name)`

/** Returns the function that renames the schema in statements; null if the schema is the default. */
export function createSchemaRenamer(url: string): ((sql: string) => string) | null {
  const schema = ledgerSchemaOf(url)
  if (schema === defaultLedgerSchema) return null
  return (sql) => sql.replace(schemaName, schema)
}

/**
 * What our schema has, and the setting `outboxd.search_path`. Names of sequences and statistics begin so, too. Any other
 * `outboxd.x` is text, or a table, in SQL that the operator wrote.
 */
const names = [
  'budget count_states document history instance ledger migration note_writer operator_act outbox_cursor pause poll',
  'problem refuse request search_path standing_pause state_delta submission',
].flatMap((line) => line.split(' '))

/**
 * The name before one of our names, after `create schema`, and as `'outboxd'::name` or `'outboxd_jobs'::name`. Without
 * the cast it is an actor, or a value or column of the ERP. pg-boss is told its schema (src/ledger/queue.ts).
 */
const schemaName = new RegExp(
  String.raw`\boutboxd(?="?\."?(?:${names.join('|')})(?![a-z0-9]))|(?<=\bcreate schema )outboxd\b|(?<=')outboxd(?=(?:_jobs)?'::name\b)`,
  'g',
)
