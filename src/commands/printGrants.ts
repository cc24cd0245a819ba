import { readStoreConfig } from '../config.ts'
import type { RoleKind } from '../ledger/operator/grants.ts'
import { readGrants } from '../operations/readGrants.ts'
import { standardTable } from '../outbox/outboxTable.ts'
import { loadOutboxFile } from '../outbox/readOutboxFile.ts'

import { type CommandContext, exit, printJson } from './terminal/context.ts'

export interface GrantOptions {
  role: string
  kind: RoleKind
  json: boolean
}

/** Prints the least that a role needs, as SQL for whoever owns the tables. @returns 1 if the outbox's table is not there */
export async function printGrants(context: CommandContext, { role, kind, json }: GrantOptions): Promise<number> {
  const config = readStoreConfig(context.env)
  const table = loadOutboxFile(config.mappingsDir) ?? standardTable(config.outboxTable)
  const { ledger, outbox } = await readGrants(config, table, { role, kind })
  if (json) printJson(context, { role, readOnly: kind === 'read', ledger, outbox })
  else
    context.stdout.write(
      `${[...block('ledger', 'STATE_DATABASE_URL', ledger), ...block('outbox', 'DATABASE_URL', outbox ?? [])].join('\n')}\n`,
    )
  if (outbox !== null) return exit.done
  context.stderr.write(
    `outboxd: there is no table ${table.table} to grant rights on: outboxd migrate --outbox creates it, or OUTBOX_TABLE or mappings/outbox.yaml names another\n`,
  )
  return exit.failed
}

const block = (what: string, variable: string, statements: readonly string[]) => [
  `-- in the database of the ${what} (${variable})`,
  ...statements.map((statement) => `${statement};`),
]
