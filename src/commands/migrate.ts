import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { historyMessage } from '../cli/historyMessage.ts'
import { wakeMessage } from '../cli/wakeMessage.ts'
import { openStoreOf } from '../cli/withOperatorStore.ts'
import { readStoreConfig, type StoreConfig } from '../config.ts'
import { migrateOutbox, migrateState } from '../store/migrateStores.ts'

export function describeMigrate(command: Command): Command {
  return command
    .description('create or upgrade our schemas, outboxd and pgboss; with --outbox also the outbox table')
    .option('--outbox', 'also create the outbox table, with the trigger that wakes the daemon')
    .option('--wake', 'with that trigger also where max_prepared_transactions is above 0')
    .option('--no-wake', 'without that trigger: rows wait for the next sweep, a second at most')
    .addHelpText('after', '\nSafe to run again, and from two processes at once: the second waits for the first.')
}

export interface MigrateOptions {
  outbox?: boolean
  /** Neither --wake nor --no-wake: as it suits the server. */
  wake?: boolean
}

export async function migrate(context: CommandContext, options: MigrateOptions): Promise<number> {
  const config = readStoreConfig(context.env)
  const applied = await migrateState(config.stateDatabaseUrl)
  for (const name of applied) context.stderr.write(`applied ${name}\n`)
  if (applied.length === 0) context.stderr.write('the schemas outboxd and pgboss are up to date\n')
  if (options.outbox) {
    const { wakes, preparedMax } = await migrateOutbox(config.databaseUrl, config.outboxTable, options.wake ?? null)
    context.stderr.write(
      `the outbox table ${config.outboxTable} is there; ${wakeMessage({ wakes: wakes ? 'sleepers' : 'never', preparedMax })}\n`,
    )
  }
  const history = await readHistory(config)
  if (history !== null) context.stderr.write(`${history}\n`)
  return 0
}

/** What the daemon would find at its first start. An outbox that cannot be read is told by `check`. */
async function readHistory(config: StoreConfig): Promise<string | null> {
  try {
    await using store = await openStoreOf(config)
    return historyMessage(await store.outbox.readHistory())
  } catch {
    return null
  }
}
