import type { Command } from 'commander'
import { readStoreConfig } from '../config.ts'
import { migrateOutbox, migrateState } from '../store/migrate.ts'
import type { CommandContext } from './context.ts'

export function describeMigrate(command: Command): Command {
  return command
    .description('create or upgrade our schemas, outboxd and pgboss; with --outbox also the outbox table')
    .option('--outbox', 'also create the outbox table, with the trigger that wakes the daemon')
    .addHelpText('after', '\nSafe to run again, and from two processes at once: the second waits for the first.')
}

export async function migrate(context: CommandContext, options: { outbox?: boolean }): Promise<number> {
  const config = readStoreConfig(context.env)
  const applied = await migrateState(config.stateDatabaseUrl)
  for (const name of applied) context.stderr.write(`applied ${name}\n`)
  if (applied.length === 0) context.stderr.write('the schemas outboxd and pgboss are up to date\n')
  if (options.outbox) {
    await migrateOutbox(config.databaseUrl, config.outboxTable)
    context.stderr.write(`the outbox table ${config.outboxTable} is there\n`)
  }
  return 0
}
