import { type DatabaseConfig, readDatabaseConfig } from '../config.ts'
import { assertMigrated, migrateLedger, readMissingMigrations } from '../ledger/migrations.ts'
import { type RoleKind, readCreateRoleStatements, readLedgerPrivilegeStatements } from '../ledger/operator/grants.ts'
import { loadMappingsOrEmptyIfBroken } from '../mapping/loadMappings.ts'
import { wakeTriggerMessage } from '../operations/databaseMessages.ts'
import { documentConditionQuery } from '../outbox/contentQueries.ts'
import {
  findForeignTableClause,
  inspectOutboxTable,
  migrateOutbox,
  type OutboxTableState,
} from '../outbox/migrateOutbox.ts'
import { readNeededQueryGrants, readOutboxGrantStatements } from '../outbox/outboxGrants.ts'
import { type OutboxTable, splitTableName } from '../outbox/outboxTable.ts'
import { loadOutboxTable } from '../outbox/readOutboxFile.ts'
import { withSearchPathOfRole } from '../postgres/database.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import { ledgerSchemaOf } from '../postgres/ledgerSchema.ts'
import { readEncodingWarningClause } from '../postgres/migrationSession.ts'
import { defineCommand } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'

export const command = defineCommand({
  description: 'create or upgrade the schemas outboxd and outboxd_jobs',
  options: [
    ['--outbox', 'also create the outbox table and its wake trigger'],
    [
      '--wake',
      'create the trigger even if max_prepared_transactions is above 0; its NOTIFY breaks PREPARE TRANSACTION',
    ],
    ['--no-wake', 'leave out the trigger: rows wait up to a second'],
    ['--dry-run', 'show what would be made, and make nothing'],
    ['--print-grants <role>', 'print the SQL that grants a role what it needs'],
    ['--read-only', 'with --print-grants: only for commands that change nothing'],
    ['--json', 'print JSON'],
  ],
  help: `You can run it again at any time. Run --print-grants again after an upgrade, because a new version may need more tables. Each
role still needs a password, or another way to sign in.

Examples:
  outboxd migrate --print-grants outboxd_run | psql "$DATABASE_URL"    if ledger and outbox are in one database
  outboxd migrate --print-grants outboxd_look --read-only              for those who only look`,
  async action(context, options): Promise<number> {
    const { dryRun = false, printGrants: role, readOnly = false, json = false } = options
    if (role !== undefined) return printGrants(context, { role, kind: readOnly ? 'read' : 'run', json })
    if (readOnly)
      return printUsageErrors(context, [
        '--read-only needs --print-grants, such as: outboxd migrate --print-grants outboxd_look --read-only',
      ])
    const config = readDatabaseConfig(context.env)
    const say = (line: string) => context.stderr.write(`${line}\n`)
    const table = options.outbox ? await readOutboxTable(config) : null
    const foreign = table && findForeignTableClause(config.outboxTable, table)
    if (foreign) return printUsageErrors(context, [foreign])
    const applied = await (dryRun ? readMissingMigrations : migrateLedger)(config.databaseUrl)
    const schema = ledgerSchemaOf(config.databaseUrl)
    if (applied.length === 0) say(`the schemas ${schema} and ${schema}_jobs are up to date`)
    else say(`${dryRun ? 'would apply' : 'applied'} ${namesOf(applied)}`)
    const warning = await readEncodingWarningClause(config.databaseUrl)
    if (warning !== null) say(`WARNING: the ledger's database: ${warning}`)
    if (table !== null && dryRun) for (const line of describeMissing(config.outboxTable, table, options.wake)) say(line)
    const outbox = options.outbox && !dryRun ? await createOutbox(config, options) : null
    if (outbox !== null) say(outbox)
    if (json) printJson(context, { dryRun, applied, outboxTable: options.outbox ? config.outboxTable : null })
    return 0
  },
})

const namedMax = 3

/** Shortens a long list to the first and the last, because --json names each migration. */
function namesOf(migrations: readonly string[]): string {
  if (migrations.length <= namedMax) return migrations.join(', ')
  return `${migrations.length} migrations, ${migrations[0]} to ${migrations.at(-1)}`
}

async function createOutbox(
  config: DatabaseConfig,
  { wake = null }: { wake?: boolean | null | undefined },
): Promise<string> {
  const trigger = await migrateOutbox(config.databaseUrl, config.outboxTable, wake)
  return `the outbox table ${config.outboxTable} exists; ${wakeTriggerMessage(trigger)}`
}

const readOutboxTable = (config: DatabaseConfig): Promise<OutboxTableState> =>
  inspectDatabase({
    of: 'outbox',
    url: config.databaseUrl,
    read: (db) => inspectOutboxTable(db, config.outboxTable),
  })

function describeMissing(
  name: string,
  { exists, missingIndexes, hasWakeTrigger, preparedMax }: OutboxTableState,
  wake: boolean | null = null,
): string[] {
  const hasTrigger = wake ?? preparedMax === 0
  return [
    exists ? `the outbox table ${name} exists` : `would create the outbox table ${name}`,
    ...missingIndexes.map((index) => `would create the index ${index}`),
    ...(hasTrigger && !hasWakeTrigger
      ? [`would create the trigger ${splitTableName(name).table}_wakes_outboxd and its function outboxd_wake`]
      : []),
    ...(!hasTrigger && hasWakeTrigger ? [`would drop the trigger ${splitTableName(name).table}_wakes_outboxd`] : []),
  ]
}

async function printGrants(
  context: CommandContext,
  { role, kind, json }: { role: string; kind: RoleKind; json: boolean },
): Promise<number> {
  const config = readDatabaseConfig(context.env)
  const table = loadOutboxTable(config)
  const ledger = await inspectDatabase({
    of: 'ledger',
    url: config.databaseUrl,
    async read(db) {
      await assertMigrated(db, config.databaseUrl)
      return [...(await readCreateRoleStatements(db, role)), ...(await readLedgerPrivilegeStatements(db, role, kind))]
    },
  })
  const ofTable = await readGrantsOfTable(config, table, { role, kind })
  const outbox = ofTable?.filter((statement) => !ledger.includes(statement)) ?? null
  if (json) printJson(context, { role, readOnly: kind === 'read', ledger, outbox })
  else context.stdout.write(`${[...block('ledger', ledger), ...block('outbox', outbox ?? [])].join('\n')}\n`)
  if (outbox !== null) return exitCodes.done
  context.stderr.write(
    `outboxd: there is no table ${table.table} to grant rights on. \`outboxd migrate --outbox\` creates it; OUTBOX_TABLE or mappings/outbox.yaml can name a different one\n`,
  )
  return exitCodes.failed
}

/** Includes permissions for what queries read. Returns null if the outbox table is missing. */
function readGrantsOfTable(
  config: DatabaseConfig,
  table: OutboxTable,
  { role, kind }: { role: string; kind: RoleKind },
): Promise<string[] | null> {
  const mappings = loadMappingsOrEmptyIfBroken(config.mappingsDir)
  return inspectDatabase({
    of: 'outbox',
    url: config.databaseUrl,
    async read(db) {
      const grants = await readOutboxGrantStatements(db, table, role, kind === 'read')
      if (grants === null) return null
      const rolePath = withSearchPathOfRole(db)
      const queries = [...mappings.values()].flatMap(({ source, document }) => [
        ...(source === null ? [] : [source.sql]),
        ...(document === null ? [] : [documentConditionQuery(document).sql]),
      ])
      const reads = await readNeededQueryGrants(rolePath, queries, role)
      return [
        ...(await readCreateRoleStatements(db, role)),
        ...new Set([...grants, ...reads.map(({ statement }) => statement)]),
      ]
    },
  })
}

const block = (what: string, statements: readonly string[]) => [
  `-- for the ${what}`,
  ...statements.map((statement) => `${statement};`),
]
