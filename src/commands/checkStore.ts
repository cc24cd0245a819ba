import { historyMessage } from '../cli/historyMessage.ts'
import { readOnlyMessage } from '../cli/readOnlyMessage.ts'
import { hiddenMessage, startMessage } from '../cli/startMessage.ts'
import { pluralize } from '../cli/table.ts'
import { wakeMessage } from '../cli/wakeMessage.ts'
import { openStoreOf } from '../cli/withOperatorStore.ts'
import type { StoreConfig } from '../config.ts'
import { readMissingLimits, readReadOnly, readServerVersion } from '../ledger/operator/readServer.ts'
import { findNearestTable } from '../outbox/findNearestTable.ts'
import { inspectOutboxTable, type OutboxTableState } from '../outbox/inspectOutboxTable.ts'
import { loadOutboxFile } from '../outbox/loadOutboxFile.ts'
import { splitTableName } from '../outbox/outboxTableName.ts'
import type { RowTrial } from '../outbox/tryRow.ts'
import { inspectDatabase } from '../store/inspectDatabase.ts'
import { gapMessage } from '../store/ledgerGap.ts'
import { assertMigrated } from '../store/migrateStores.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import type { Finding } from './check.ts'

/** Looks at the ledger's database. @throws DatabaseUnusable where it cannot be reached or lacks a migration */
export async function checkLedger({ stateDatabaseUrl: url }: StoreConfig): Promise<Finding> {
  const { version, limits, cause } = await inspectDatabase({
    variable: 'STATE_DATABASE_URL',
    url,
    async look(db) {
      await assertMigrated(db, url)
      return {
        version: await readServerVersion(db),
        limits: await readMissingLimits(db),
        cause: await readReadOnly(db),
      }
    },
  })
  if (cause !== null) return { what: 'ledger', isOk: false, message: readOnlyMessage({ of: 'ledger', cause }) }
  if (limits.length > 0) return { what: 'ledger', isOk: false, message: limitMessage(limits) }
  return { what: 'ledger', isOk: true, message: `PostgreSQL ${version}, all migrations are applied` }
}

const readColumns = ['id', 'type', 'key', 'payload', 'created_at', 'status']
const writtenColumns = ['status', 'transaction_id', 'error_code', 'error', 'updated_at']

/**
 * Looks at the outbox's database and table. A table of the ERP's own, which mappings/outbox.yaml describes, is checked as
 * it is opened.
 *
 * @throws DatabaseUnusable where it cannot be reached, OutboxTableUnusable and FilesInvalid in words
 */
export async function checkOutbox(config: StoreConfig): Promise<Finding> {
  const described = loadOutboxFile(config.mappingsDir)
  const { version, limits, cause, table, nearest } = await inspectDatabase({
    variable: 'DATABASE_URL',
    url: config.databaseUrl,
    look: async (db) => ({
      version: await readServerVersion(db),
      limits: await readMissingLimits(db),
      cause: await readReadOnly(db),
      table: described === null ? await inspectOutboxTable(db, config.outboxTable) : null,
      nearest: described === null ? await findNearestTable(db, splitTableName(config.outboxTable)) : null,
    }),
  })
  const problems = [
    ...(cause === null ? [] : [readOnlyMessage({ of: 'outbox', cause })]),
    ...(table === null ? [] : tableProblems(config.outboxTable, table, nearest)),
    ...(limits.length > 0 ? [limitMessage(limits)] : []),
  ]
  if (problems.length > 0) return { what: 'outbox', isOk: false, message: problems.join('\n') }
  const wakes = table === null ? '' : `; ${wakeMessage(table)}`
  const { isOk, message } = await readOutbox(config)
  return { what: 'outbox', isOk, message: isOk ? `PostgreSQL ${version}, ${message}${wakes}` : message }
}

function limitMessage(statements: readonly string[]): string {
  return `a pooler in between keeps our limits of time from the server, so that a statement could wait for ever; give them to the role: ${statements.join('; ')}`
}

function tableProblems(name: string, { exists, columns }: OutboxTableState, nearest: string | null): string[] {
  if (!exists) {
    const ways = `outboxd migrate --outbox creates it, or OUTBOX_TABLE names another, or mappings/outbox.yaml describes yours (outboxd describe TABLE writes it)`
    return [`there is no table ${name}: ${ways}${nearest === null ? '' : `; did you mean "${nearest}"?`}`]
  }
  const byName = new Map(columns.map((column) => [column.name, column]))
  const missing = [...new Set([...readColumns, ...writtenColumns])].filter((column) => !byName.has(column))
  const unreadable = readColumns.filter((column) => byName.get(column)?.readable === false)
  const unwritable = writtenColumns.filter((column) => byName.get(column)?.writable === false)
  return [
    missing.length > 0 &&
      `the table ${name} lacks ${missing.join(', ')}: mappings/outbox.yaml can describe another shape`,
    unreadable.length > 0 && `we may not read ${unreadable.join(', ')} of ${name}: grant select on it`,
    unwritable.length > 0 && `we may not write ${unwritable.join(', ')} of ${name}: grant update on it`,
  ].filter((problem) => problem !== false)
}

/** Reads it and tries what is written to it, the way the daemon does, where the ledger is there. */
async function readOutbox(config: StoreConfig): Promise<Pick<Finding, 'isOk' | 'message'>> {
  let store: OperatorStore
  try {
    store = await openStoreOf(config)
  } catch {
    return { isOk: true, message: 'the table is there' } // the ledger's own finding says what is wrong with it
  }
  await using open = store
  const { waiting } = await open.outbox.backlog()
  await open.outbox.readNew(1)
  const until = performance.now() + compareMaxMs
  const gap = await open.findGap(() => performance.now() < until)
  if (gap.rows.length > 0) return { isOk: false, message: gapMessage(gap) }
  const { isOk, message } = trialMessage(await open.outbox.tryRow())
  const start = startMessage((await open.readServedOutbox()).start)
  const history = historyMessage(await open.outbox.readHistory())
  const hidden = hiddenMessage(await open.outbox.readHidden())
  const remarks = (await open.outbox.findRemarks()).map((sentence) => `; note: ${sentence}`).join('')
  const also = `${start === null ? '' : `. ${start}`}${hidden === null ? '' : ` ${hidden}`}${history === null ? '' : `; ${history}`}${remarks}`
  return {
    isOk,
    message: isOk ? `${pluralize(waiting, 'row')} ${waiting === 1 ? 'waits' : 'wait'}; ${message}${also}` : message,
  }
}

/** The daemon compares the whole table each hour. */
const compareMaxMs = 10_000

/** What the trial of a row shows. */
function trialMessage(trial: RowTrial): Pick<Finding, 'isOk' | 'message'> {
  switch (trial.kind) {
    case 'never-written':
      return { isOk: true, message: 'nothing is written to the table' }
    case 'no-row':
      return {
        isOk: true,
        message: trial.waits
          ? 'we could not try to write: other sessions have each row that waits locked just now'
          : 'we could not try to write: no row waits',
      }
    case 'tried': {
      const { outboxId, refusals } = trial
      if (refusals.length === 0)
        return { isOk: true, message: `we wrote each state to row ${outboxId} for a trial, and took it back` }
      const message = refusals.map(({ state, why }) => `row ${outboxId} cannot be told that it is ${state}: ${why}`)
      return { isOk: false, message: [...message, 'we took all of the trial back'].join('\n') }
    }
    default:
      return trial satisfies never
  }
}
