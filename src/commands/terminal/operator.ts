import { hostname, userInfo } from 'node:os'
import { readStoreConfig, type StoreConfig } from '../../config.ts'
import type { StatedActor } from '../../ledger/operator/operator.ts'
import { nameMax, personName, reasonProblem } from '../../operations/actor.ts'
import { type Databases, type LedgerSessions, openDatabases } from '../../operations/databases.ts'
import { loadOutboxFile } from '../../outbox/readOutboxFile.ts'
import type { CommandContext } from './context.ts'

/** The options of every command that changes something. */
export interface ActorOptions {
  as?: string | undefined
  reason?: string | undefined
}

/** The operator and the reason, for the logs. */
export function actorOf({ env }: Pick<CommandContext, 'env'>, { as, reason }: ActorOptions): StatedActor {
  const who = as === undefined ? operatorName(env) : `operator ${as.trim()}`
  return { who, reason: reason?.trim() || null }
}

/** The user who called sudo, or the user of this process, by name or number. */
function operatorName({ SUDO_USER }: CommandContext['env']): string {
  return `operator ${SUDO_USER || userName()}`
}

/** user@host of this process, whatever name was given. */
export const accountName = (): string => `${userName()}@${hostname()}`

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

const whoHelp = 'who does this, for the log (default: your name on this machine)'
export const asOption = ['--as <name>', whoHelp] as const
/** The name of `--as` of `recover` in 0.1. */
export const byOption = ['--by <name>', 'the same as --as NAME'] as const
export const reasonOption = ['--reason <text>', 'why; the log keeps it'] as const

/** Problems of `--as` and `--reason`. Pure. */
export function actorProblems({ as, reason }: ActorOptions): string[] {
  const wrongReason = reason === undefined ? null : reasonProblem(reason.trim())
  return [
    ...(as === undefined || personName(as) !== null ? [] : [`--as takes a name of at most ${nameMax} characters`]),
    ...(wrongReason === null ? [] : [`--reason ${wrongReason}`]),
  ]
}

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
