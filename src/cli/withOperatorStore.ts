import { userInfo } from 'node:os'
import { readStoreConfig, type StoreConfig } from '../config.ts'
import { loadOutboxFile } from '../outbox/outboxFile.ts'
import { type OperatorStore, openOperatorStore } from '../store/operatorStore.ts'
import type { CommandContext } from './context.ts'

/** The exit codes of README.md, "Commands". */
export const exit = { done: 0, failed: 1, usage: 2, nothing: 3, unconfirmed: 4 } as const

/** Opens the databases for one command and closes them after it. @returns the command's exit code */
export async function withOperatorStore(
  context: CommandContext,
  work: (store: OperatorStore, config: StoreConfig) => Promise<number>,
): Promise<number> {
  const config = readStoreConfig(context.env)
  await using store = await openStoreOf(config)
  return await work(store, config)
}

/** Opens the databases, the outbox as mappings/outbox.yaml describes it, where there is one. */
export function openStoreOf(config: StoreConfig): Promise<OperatorStore> {
  return openOperatorStore(config, operatorName(), () => loadOutboxFile(config.mappingsDir) ?? config.outboxTable)
}

/** Who gives the command, for the log: by the name of the operating system, or by number where it has none. */
export function operatorName(): string {
  try {
    return `operator ${userInfo().username}`
  } catch {
    return `operator uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** Says what is wrong with the way the command was given. @returns the exit code for that */
export function usageError(context: CommandContext, problems: readonly string[]): number {
  for (const problem of problems) context.stderr.write(`outboxd: ${problem}\n`)
  return exit.usage
}

export function printJson(context: CommandContext, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}
