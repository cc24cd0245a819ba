import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { historyMessage } from '../cli/historyMessage.ts'
import { printJson } from '../cli/printJson.ts'
import { wakeMessage } from '../cli/wakeMessage.ts'
import { openStoreOf } from '../cli/withOperatorStore.ts'
import { readStoreConfig, type StoreConfig } from '../config.ts'
import { migrateOutbox, migrateState, readMissing } from '../store/migrateStores.ts'

export function describeMigrate(command: Command): Command {
  return command
    .description('create or upgrade our schemas, outboxd and pgboss; with --outbox also the outbox table')
    .option('--outbox', 'also create the outbox table, with the trigger that wakes the daemon')
    .option('--wake', 'with that trigger also where max_prepared_transactions is above 0')
    .option('--no-wake', 'without that trigger: rows wait for the next sweep, a second at most')
    .option('--dry-run', 'say what it would apply; change nothing')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nSafe to run again, and from two processes at once: the second waits for the first.')
}

export interface MigrateOptions {
  outbox?: boolean
  /** Neither --wake nor --no-wake: as it suits the server. */
  wake?: boolean
  dryRun?: boolean
  json?: boolean
}

export async function migrate(context: CommandContext, options: MigrateOptions): Promise<number> {
  const config = readStoreConfig(context.env)
  const { dryRun = false } = options
  const say = (line: string) => context.stderr.write(`${line}\n`)
  const applied = await (dryRun ? readMissing : migrateState)(config.stateDatabaseUrl)
  for (const name of applied) say(`${dryRun ? 'would apply' : 'applied'} ${name}`)
  if (applied.length === 0) say('the schemas outboxd and pgboss are up to date')
  if (options.outbox && dryRun)
    say(`would create the outbox table ${config.outboxTable} where it is not there, and renew its trigger`)
  const outbox = options.outbox && !dryRun ? await createOutbox(config, options) : null
  if (outbox !== null) say(outbox)
  const history = dryRun ? null : await readHistory(config)
  if (history !== null) say(history)
  if (options.json)
    printJson(context, { dryRun, applied, outboxTable: options.outbox ? config.outboxTable : null, history })
  return 0
}

async function createOutbox(config: StoreConfig, { wake = null }: { wake?: boolean | null }): Promise<string> {
  const { wakes, preparedMax } = await migrateOutbox(config.databaseUrl, config.outboxTable, wake)
  return `the outbox table ${config.outboxTable} is there; ${wakeMessage({ wakes: wakes ? 'sleepers' : 'never', preparedMax })}`
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
