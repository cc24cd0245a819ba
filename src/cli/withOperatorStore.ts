import { userInfo } from 'node:os'
import { readStoreConfig, type StoreConfig } from '../config.ts'
import { loadOutboxFile } from '../outbox/loadOutboxFile.ts'
import { type OperatorStore, openOperatorStore } from '../store/operatorStore.ts'
import type { CommandContext } from './context.ts'

/** Opens the databases for one command and closes them after it. @returns the command's exit code */
export async function withOperatorStore(
  context: CommandContext,
  work: (store: OperatorStore, config: StoreConfig) => Promise<number>,
): Promise<number> {
  const config = readStoreConfig(context.env)
  await using store = await openStoreOf(config, operatorName(context.env))
  return await work(store, config)
}

/** Opens the databases, the outbox as mappings/outbox.yaml describes it, where there is one. */
export function openStoreOf(config: StoreConfig, who = operatorName()): Promise<OperatorStore> {
  return openOperatorStore(config, who, () => loadOutboxFile(config.mappingsDir) ?? config.outboxTable)
}

/** Who gives the command, for the log: the one who called sudo, or by the name of the operating system, or by number. */
export function operatorName({ SUDO_USER }: CommandContext['env'] = {}): string {
  if (SUDO_USER) return `operator ${SUDO_USER}`
  try {
    return `operator ${userInfo().username}`
  } catch {
    return `operator uid ${process.getuid?.() ?? 'unknown'}`
  }
}
