import type { StoreConfig } from '../config.ts'
import { loadOutboxFile } from '../map/outboxFile.ts'
import { gapWords } from '../store/ledgerGap.ts'
import { assertMigrated } from '../store/migrate.ts'
import { inspectOutboxTable, type OutboxTableState } from '../store/operator/inspectOutboxTable.ts'
import { readMissingLimits, readReadOnly, readServerVersion } from '../store/operator/readServer.ts'
import { inspectDatabase, type OperatorStore } from '../store/operator.ts'
import type { RowTrial } from '../store/outbox/tryRow.ts'
import { hiddenWords, startWords } from './adopt.ts'
import type { Finding } from './check.ts'
import { historyWords } from './historyWords.ts'
import { openStoreOf } from './operate.ts'
import { readOnlyWords } from './readOnlyWords.ts'
import { counted } from './table.ts'
import { wakeWords } from './wakeWords.ts'

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
  if (cause !== null) return { what: 'ledger', isOk: false, words: readOnlyWords({ of: 'ledger', cause }) }
  if (limits.length > 0) return { what: 'ledger', isOk: false, words: limitWords(limits) }
  return { what: 'ledger', isOk: true, words: `PostgreSQL ${version}, all migrations are applied` }
}

const readColumns = ['id', 'type', 'key', 'payload', 'created_at', 'status']
const writtenColumns = ['status', 'transaction_id', 'error_code', 'error', 'updated_at']

/**
 * Looks at the outbox's database and table. A table of the ERP's own, which mappings/outbox.yaml describes, is checked as
 * it is opened.
 *
 * @throws DatabaseUnusable where it cannot be reached, OutboxTableUnusable and MappingFilesInvalid in words
 */
export async function checkOutbox(config: StoreConfig): Promise<Finding> {
  const described = loadOutboxFile(config.mappingsDir)
  const { version, limits, cause, table } = await inspectDatabase({
    variable: 'DATABASE_URL',
    url: config.databaseUrl,
    look: async (db) => ({
      version: await readServerVersion(db),
      limits: await readMissingLimits(db),
      cause: await readReadOnly(db),
      table: described === null ? await inspectOutboxTable(db, config.outboxTable) : null,
    }),
  })
  const problems = [
    ...(cause === null ? [] : [readOnlyWords({ of: 'outbox', cause })]),
    ...(table === null ? [] : tableProblems(config.outboxTable, table)),
    ...(limits.length > 0 ? [limitWords(limits)] : []),
  ]
  if (problems.length > 0) return { what: 'outbox', isOk: false, words: problems.join('\n') }
  const wakes = table === null ? '' : `; ${wakeWords(table)}`
  const { isOk, words } = await readOutbox(config)
  return { what: 'outbox', isOk, words: isOk ? `PostgreSQL ${version}, ${words}${wakes}` : words }
}

function limitWords(statements: readonly string[]): string {
  return `a pooler in between keeps our limits of time from the server, so that a statement could wait for ever; give them to the role: ${statements.join('; ')}`
}

function tableProblems(name: string, { exists, columns }: OutboxTableState): string[] {
  if (!exists)
    return [
      `there is no table ${name}: outboxd migrate --outbox creates it, or OUTBOX_TABLE names another, or mappings/outbox.yaml describes yours`,
    ]
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
async function readOutbox(config: StoreConfig): Promise<Pick<Finding, 'isOk' | 'words'>> {
  let store: OperatorStore
  try {
    store = await openStoreOf(config)
  } catch {
    return { isOk: true, words: 'the table is there' } // the ledger's own finding says what is wrong with it
  }
  await using open = store
  const { waiting } = await open.outbox.backlog()
  await open.outbox.readNew(1)
  const until = performance.now() + compareMaxMs
  const gap = await open.findGap(() => performance.now() < until)
  if (gap.rows.length > 0) return { isOk: false, words: gapWords(gap) }
  const { isOk, words } = trialWords(await open.outbox.tryRow())
  const start = startWords((await open.readServedOutbox()).start)
  const history = historyWords(await open.outbox.readHistory())
  const hidden = hiddenWords(await open.outbox.readHidden())
  const remarks = (await open.outbox.findRemarks()).map((sentence) => `; note: ${sentence}`).join('')
  const also = `${start === null ? '' : `. ${start}`}${hidden === null ? '' : ` ${hidden}`}${history === null ? '' : `; ${history}`}${remarks}`
  return {
    isOk,
    words: isOk ? `${counted(waiting, 'row')} ${waiting === 1 ? 'waits' : 'wait'}; ${words}${also}` : words,
  }
}

/** The daemon compares the whole table each hour. */
const compareMaxMs = 10_000

/** What the trial of a row shows. */
function trialWords(trial: RowTrial): Pick<Finding, 'isOk' | 'words'> {
  switch (trial.kind) {
    case 'never-written':
      return { isOk: true, words: 'nothing is written to the table' }
    case 'no-row':
      return {
        isOk: true,
        words: trial.waits
          ? 'what we write was not tried: each row that waits is locked just now'
          : 'what we write was not tried: there is no row that waits',
      }
    case 'tried': {
      const { outboxId, refusals } = trial
      if (refusals.length === 0)
        return { isOk: true, words: `row ${outboxId} was told each state for a trial, and is as it was` }
      const words = refusals.map(({ state, why }) => `row ${outboxId} cannot be told that it is ${state}: ${why}`)
      return { isOk: false, words: [...words, 'all of the trial was taken back'].join('\n') }
    }
    default:
      return trial satisfies never
  }
}
