import { readStoreConfig, type StoreConfig } from '../../config.ts'
import type { LedgerSessions } from '../../operations/databases.ts'
import { loadOutboxFile } from '../../outbox/loadOutboxFile.ts'
import { type OperatorStore, openOperatorStore } from '../../store/operatorStore.ts'
import { accountName } from './actor.ts'
import type { CommandContext } from './context.ts'

/** Opens the databases for one command and closes them after it. @returns the command's exit code */
export async function withOperatorStore(
  context: CommandContext,
  work: (store: OperatorStore, config: StoreConfig) => Promise<number>,
): Promise<number> {
  const config = readStoreConfig(context.env)
  await using store = await openStoreOf(config)
  return await work(store, config)
}

/**
 * Opens the databases, the outbox as mappings/outbox.yaml describes it, if there is one.
 *
 * @param sessions of the ledger; 2 where nothing is said
 */
export function openStoreOf(config: StoreConfig, sessions?: LedgerSessions): Promise<OperatorStore> {
  const outboxTable = () => loadOutboxFile(config.mappingsDir) ?? config.outboxTable
  return openOperatorStore(config, accountName(), outboxTable, sessions)
}
