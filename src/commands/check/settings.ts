import type { Config } from '../../config.ts'
import { describeDifferences, readSettings } from '../../ledger/settings.ts'
import { loadMappings } from '../../mapping/loadMappings.ts'
import { readFileSettings } from '../../outbox/digestFiles.ts'
import { loadOutboxTable } from '../../outbox/readOutboxFile.ts'
import type { Database } from '../../postgres/database.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import { type Finding, makeFinding } from './finding.ts'

/** Compares what this host was given with what the ledger has, because all daemons act on the ledger's. */
export async function checkSettings({ databaseUrl, mappingsDir, outboxTable, shared }: Config): Promise<Finding[]> {
  const table = loadOutboxTable({ mappingsDir, outboxTable })
  const mappings = loadMappings(mappingsDir)
  const read = (db: Database) => readFileSettings(db, table, mappings)
  const own = { ...shared, ...(await inspectDatabase({ of: 'outbox', url: databaseUrl, read })) }
  const ledger = await inspectDatabase({ of: 'ledger', url: databaseUrl, read: readSettings })
  if (ledger === null) return [makeFinding('settings', 'ok', 'no daemon has run yet: the first one’s settings count')]
  const differences = describeDifferences(own, ledger)
  if (differences === '') return [makeFinding('settings', 'ok', 'variables and files are those of the ledger')]
  return [
    makeFinding(
      'settings',
      'warning',
      `variables or files differ from the ledger’s, which count: ${differences}. A daemon with these settings captures and writes back nothing while one with the ledger’s runs. To change the settings, restart all daemons with the new ones. Otherwise correct them here`,
    ),
  ]
}
