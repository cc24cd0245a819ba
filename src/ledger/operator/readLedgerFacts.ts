import { type Database, epochMsSql, queryOne } from '../../postgres/database.ts'
import type { Settings } from '../settings.ts'

/** Which ledger this is, and whose settings it keeps. */
export interface LedgerFacts {
  database: string
  postgresVersion: string
  /** Its table with the schema, such as `outboxd.ledger`. */
  name: string
  sinceMs: number
  /** The service's address; null until a daemon has run. */
  service: string | null
  /** The outbox's table; null until a daemon has run. */
  table: string | null
  settings: Settings | null
  settingsSinceMs: number | null
  settingsBy: string | null
}

export async function readLedgerFacts(db: Database): Promise<LedgerFacts> {
  return queryOne<LedgerFacts>(
    db,
    `select current_database() as database, current_setting('server_version') as "postgresVersion",
       'outboxd.ledger'::regclass::text as name, ${epochMsSql('l.since')} as "sinceMs", l.base_url as service,
       l.table_name as "table", l.settings, ${epochMsSql('l.settings_since')} as "settingsSinceMs", l.settings_by as "settingsBy"
     from outboxd.ledger l`,
  )
}
