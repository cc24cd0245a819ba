import { quoteIdentifier } from '../postgres/database.ts'

/** The channel on which our own outbox table says that there are new rows. */
export const outboxChannel = 'outboxd_outbox'

/** The two parts of a name, or schema.name, as OUTBOX_TABLE has it. */
export function splitTableName(name: string): { schema: string | null; table: string } {
  const [first = '', second] = name.split('.')
  return second === undefined ? { schema: null, table: first } : { schema: first, table: second }
}

/**
 * The quoted names that belong to an outbox table.
 *
 * @param name name, or schema.name, as OUTBOX_TABLE has it
 */
export function outboxTableName(name: string): { qualified: string; trigger: string; index: string } {
  const parts = name.split('.')
  const table = parts.at(-1) ?? name
  return {
    qualified: parts.map(quoteIdentifier).join('.'),
    trigger: quoteIdentifier(`${table}_wakes_outboxd`),
    index: quoteIdentifier(`${table}_new`),
  }
}
