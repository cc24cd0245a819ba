import { readStoreConfig, type StoreConfig } from '../../config.ts'
import type { Databases, LedgerSessions } from '../../operations/databases.ts'
import { openDatabases } from '../../operations/databases.ts'
import { loadOutboxFile } from '../../outbox/readOutboxFile.ts'
import { accountName } from './actor.ts'
import type { CommandContext } from './context.ts'

/** Opens the databases for one command and closes them after it. @returns the command's exit code */
export async function withDatabases(
  context: CommandContext,
  work: (databases: Databases, config: StoreConfig) => Promise<number>,
): Promise<number> {
  const config = readStoreConfig(context.env)
  await using databases = await openDatabasesOf(config)
  return await work(databases, config)
}

/**
 * Opens the databases, the outbox as mappings/outbox.yaml describes it, if there is one.
 *
 * @param sessions of the ledger; 2 where nothing is said
 */
export function openDatabasesOf(config: StoreConfig, sessions?: LedgerSessions): Promise<Databases> {
  const outboxTable = () => loadOutboxFile(config.mappingsDir) ?? config.outboxTable
  return openDatabases(config, accountName(), outboxTable, sessions)
}
