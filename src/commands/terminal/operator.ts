import { hostname, userInfo } from 'node:os'
import { type DatabaseConfig, readDatabaseConfig } from '../../config.ts'
import type { Operator, WhoAndReason } from '../../ledger/operator/operator.ts'
import { findReasonProblemClause, normalizePersonName, personNameMax } from '../../operations/actor.ts'
import {
  createOperator,
  type Databases,
  type LedgerPoolOptions,
  openDatabases,
  withLocksNamed,
} from '../../operations/databases.ts'
import { loadOutboxTable } from '../../outbox/readOutboxFile.ts'
import { type CommandContext, printUsageErrors } from './context.ts'

interface ActorOptions {
  as?: string | undefined
  reason?: string | undefined
}

export function actorFromOptions({ env }: Pick<CommandContext, 'env'>, { as, reason }: ActorOptions): WhoAndReason {
  const who = as === undefined ? operatorName(env) : `operator ${as.trim()}`
  return { who, reason: reason?.trim() || null }
}

function operatorName({ SUDO_USER }: CommandContext['env']): string {
  return `operator ${SUDO_USER || userName()}`
}

/** The account as user@host, whatever `--as` says. */
const accountName = (): string => `${userName()}@${hostname()}`

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

export const actorNameOption = ['--as <name>', 'your name, for the log (default: your user name)'] as const
export const reasonOption = ['--reason <text>', 'why, for the log'] as const
export const dryRunOption = ['--dry-run', 'show what would change, and change nothing'] as const
export const changeOptions = [
  actorNameOption,
  dryRunOption,
  ['--yes', 'do not ask for confirmation'],
  ['--json', 'print JSON'],
] as const

export function findActorProblems({ as, reason }: ActorOptions): string[] {
  const wrongReason = reason === undefined ? null : findReasonProblemClause(reason.trim())
  return [
    ...(as === undefined || normalizePersonName(as) !== null
      ? []
      : [`--as needs a name of 1 to ${personNameMax} printable characters, such as --as "Erin Bell"`]),
    ...(wrongReason === null ? [] : [`--reason ${wrongReason}`]),
  ]
}

export async function withOperator(
  context: CommandContext,
  options: ActorOptions,
  optionProblems: readonly string[],
  work: (databases: Databases, operator: Operator, config: DatabaseConfig) => Promise<number>,
): Promise<number> {
  const problems = [...optionProblems, ...findActorProblems(options)]
  if (problems.length > 0) return printUsageErrors(context, problems)
  return withDatabases(context, (databases, config) =>
    work(databases, createOperator(databases, actorFromOptions(context, options)), config),
  )
}

export async function withDatabases(
  context: CommandContext,
  work: (databases: Databases, config: DatabaseConfig) => Promise<number>,
): Promise<number> {
  const config = readDatabaseConfig(context.env)
  await using databases = await openDatabasesOf(config)
  return await withLocksNamed(databases, () => work(databases, config))
}

export function openDatabasesOf(config: DatabaseConfig, sessions?: LedgerPoolOptions): Promise<Databases> {
  const outboxTable = () => loadOutboxTable(config)
  return openDatabases(config, accountName(), outboxTable, sessions)
}
