import type { StoreConfig } from '../config.ts'
import { readMissingLimits, readReadOnly, readServerVersion } from '../ledger/operator/readServer.ts'
import { readServedOutbox } from '../ledger/servedOutbox.ts'
import {
  countRowsOfUnknownStatus,
  describeOtherDaemons,
  findLedgerBesideOurs,
  findLostRows,
  findRowsPassedOver,
} from '../operations/compareDatabases.ts'
import {
  hiddenMessage,
  historyMessage,
  readOnlyMessage,
  startMessage,
  wakeMessage,
} from '../operations/databaseMessages.ts'
import type { Databases } from '../operations/databases.ts'
import { withOutbox } from '../operations/databases.ts'
import { readBacklog, readHistory } from '../outbox/backlog.ts'
import { examineTable, findRemarks } from '../outbox/examineTable.ts'
import { findRightProblems } from '../outbox/findRightProblems.ts'
import { findShortIdColumns } from '../outbox/findWriteProblems.ts'
import { findNearestTable } from '../outbox/inspectTable.ts'
import { gapMessage } from '../outbox/ledgerGap.ts'
import { inspectOutboxTable, type OutboxTableState } from '../outbox/migrateOutbox.ts'
import { type OutboxTable, splitTableName, standardTable } from '../outbox/outboxTable.ts'
import { passedOverMessage } from '../outbox/passedOver.ts'
import { findUnusedSentColumns } from '../outbox/propose/readAllWords.ts'
import { loadOutboxFile } from '../outbox/readOutboxFile.ts'
import { readNew } from '../outbox/rows.ts'
import { secondLedgerMessage } from '../outbox/secondLedger.ts'
import { readHidden } from '../outbox/startPosition.ts'
import type { RowTrial } from '../outbox/tryRow.ts'
import { tryRow } from '../outbox/tryRow.ts'
import { unknownStatusAdvice, unknownStatusMessage } from '../outbox/unknownStatuses.ts'
import { pluralize } from '../plainText.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import { hasOwnSessions } from '../postgres/sessionSettings.ts'
import { type Finding, notAsked } from './check/finding.ts'
import { limitMessage } from './check/ledger.ts'
import { checkTypes } from './checkTypes.ts'
import { openDatabasesOf } from './terminal/withDatabases.ts'

/**
 * Looks at the outbox's database and table: whether it can be written, what our user may do, whether Postgres would run each statement
 * of the daemon; then, where the ledger is there, at its rows.
 *
 * @throws DatabaseUnusable where it cannot be reached, OutboxTableUnusable and FilesInvalid in words
 */
export async function checkOutbox(config: StoreConfig): Promise<Finding[]> {
  const described = loadOutboxFile(config.mappingsDir)
  const table = described ?? standardTable(config.outboxTable)
  const { version, problems, wakes, unused, shortIds } = await inspectOutbox(config, table)
  if (problems.length > 0) return [{ what: 'outbox', mark: 'problem', message: problems.join('\n') }]
  let databases: Databases
  try {
    databases = await openDatabasesOf(config)
  } catch {
    const why = 'the ledger cannot be used. The table can: Postgres would run each statement of the daemon'
    return [notAsked('outbox', why), notAsked('types', 'the ledger cannot be used')]
  }
  await using open = databases
  const { mark, message } = await readOutbox(open)
  const whole = mark === 'ok' ? `PostgreSQL ${version}, ${message}${wakes}` : message
  const finding: Finding =
    mark === 'ok' && unused.length > 0
      ? { what: 'outbox', mark: 'warning', message: `${unusedMessage(unused)}\n${whole}` }
      : { what: 'outbox', mark, message: whole }
  const second = await findLedgerBesideOurs(databases)
  const ledgers: Finding[] =
    second === null
      ? []
      : [
          {
            what: 'ledgers',
            mark: second.open > 0 || table.state === null ? 'problem' : 'warning',
            message: secondLedgerMessage(second),
          },
        ]
  const short = shortIds.map((message): Finding => ({ what: 'transaction ids', mark: 'warning', message }))
  return [finding, ...short, ...ledgers, await checkTypes(open, config, table)]
}

function unusedMessage(columns: readonly string[]): string {
  const says = columns.length === 1 ? 'may say that a row was sent, and is' : 'may say that a row was sent, and are'
  return `${columns.join(', ')} ${says} not looked at (state: none): what another program has sent is sent again. Read the column as the state (outboxd describe proposes how), name it in the filter, or begin behind the old rows (outboxd adopt --start)`
}

interface Inspected {
  version: string
  problems: string[]
  /** What wakes the daemon, to follow; empty for a table of the ERP's own. */
  wakes: string
  /** Columns that may say that a row was sent, where none is read for that. */
  unused: string[]
  /** A sentence for each column that cuts ids of transactions. */
  shortIds: string[]
}

function inspectOutbox(config: StoreConfig, table: OutboxTable): Promise<Inspected> {
  const { databaseUrl: url, outboxTable } = config
  return inspectDatabase({
    variable: 'DATABASE_URL',
    url,
    async look(pool) {
      const cause = await readReadOnly(pool)
      const limits = await readMissingLimits(pool)
      const ours = table.file === null ? await inspectOutboxTable(pool, outboxTable) : null
      const missing = ours === null ? [] : await tableProblems(pool, outboxTable, ours)
      // What our user must not see looks as if it were not there.
      const hidden = missing.length === 0 ? [] : await findRightProblems(pool, table)
      const problems = [
        ...(cause === null ? [] : [readOnlyMessage({ of: 'outbox', cause })]),
        ...(hidden.length > 0 ? hidden : missing.length > 0 ? missing : await examineTable(pool, table)),
        ...(limits.length > 0 ? [limitMessage(limits)] : []),
      ]
      const unused = problems.length === 0 ? await findUnusedSentColumns(pool, table) : []
      return {
        version: await readServerVersion(pool),
        problems,
        wakes: ours === null ? '' : `; ${(await hasOwnSessions(pool)) ? wakeMessage(ours) : pooled}`,
        unused,
        shortIds: problems.length === 0 ? await findShortIdColumns(pool, table) : [],
      }
    },
  })
}

/** LISTEN needs a session, which a pooler in transaction mode does not lend. */
const pooled =
  'no insert wakes the daemon through a pooler that lends sessions: rows wait for the next sweep, a second at most'

const ourColumns = ['id', 'type', 'key', 'payload', 'created_at']
const writtenColumns = ['status', 'transaction_id', 'error_code', 'error', 'updated_at']

/** What there is not of the table that `migrate --outbox` creates. */
async function tableProblems(
  db: Parameters<typeof findNearestTable>[0],
  name: string,
  { exists, columns }: OutboxTableState,
): Promise<string[]> {
  if (!exists) {
    const nearest = await findNearestTable(db, splitTableName(name))
    const ways = `outboxd migrate --outbox creates it, or OUTBOX_TABLE names another, or mappings/outbox.yaml describes yours (outboxd describe TABLE writes it)`
    return [`there is no table ${name}: ${ways}${nearest === null ? '' : `; did you mean "${nearest}"?`}`]
  }
  const missing = [...ourColumns, ...writtenColumns].filter((column) => !columns.includes(column))
  if (missing.length === 0) return []
  return [`the table ${name} lacks ${missing.join(', ')}: mappings/outbox.yaml can describe another shape`]
}

/** Reads it and tries what is written to it, the way the daemon does. */
async function readOutbox(databases: Databases): Promise<Pick<Finding, 'mark' | 'message'>> {
  const others = await describeOtherDaemons(databases)
  if (others !== null) return { mark: 'problem', message: others }
  const { waiting } = await withOutbox(databases, readBacklog)
  await withOutbox(databases, (outbox) => readNew(outbox, 1))
  const until = performance.now() + compareMaxMs
  const history = await withOutbox(databases, readHistory)
  const gap = await findLostRows(databases, () => performance.now() < until, history !== null)
  const named = history === null ? undefined : gap.rows.find(({ transactionId }) => transactionId !== null)
  if (named !== undefined) return { mark: 'problem', message: namedMessage(named.outboxId) }
  if (gap.rows.length > 0) return { mark: 'problem', message: gapMessage(gap) }
  const passed = await findRowsPassedOver(databases, () => performance.now() < until)
  if (passed.rows > 0)
    return { mark: 'warning', message: `${passedOverMessage(passed)}. A daemon finds and takes them within the hour` }
  const unknown = await countRowsOfUnknownStatus(databases, () => performance.now() < until)
  if (unknown.statuses.length > 0)
    return { mark: 'warning', message: `${unknownStatusMessage(unknown)}. ${unknownStatusAdvice}` }
  const { mark, message } = trialMessage(await withOutbox(databases, tryRow))
  const start = startMessage((await readServedOutbox(databases.ledger)).start)
  const before = historyMessage(history)
  const hidden = hiddenMessage(await withOutbox(databases, readHidden))
  const remarks = (await withOutbox(databases, findRemarks)).map((sentence) => `; note: ${sentence}`).join('')
  const also = `${start === null ? '' : `. ${start}`}${hidden === null ? '' : ` ${hidden}`}${before === null ? '' : `; ${before}`}${remarks}`
  return {
    mark,
    message:
      mark === 'ok' ? `${pluralize(waiting, 'row')} ${waiting === 1 ? 'waits' : 'wait'}; ${message}${also}` : message,
  }
}

const namedMessage = (outboxId: string) =>
  `row ${outboxId} names a transaction, and the ledger has no records: with that a daemon sends nothing until outboxd recover, as the ledger may have lost them. If the rows are of before outboxd: outboxd adopt --start id:N, the first row that is to be sent, before a daemon starts`

/** The daemon compares the whole table each hour. */
const compareMaxMs = 10_000

/** What the trial of a row shows. */
function trialMessage(trial: RowTrial): Pick<Finding, 'mark' | 'message'> {
  switch (trial.kind) {
    case 'never-written':
      return { mark: 'ok', message: 'nothing is written to the table' }
    case 'no-row':
      return {
        mark: 'ok',
        message: trial.waits
          ? 'we could not try to write: other sessions have each row that waits locked just now'
          : 'we could not try to write: no row waits',
      }
    case 'tried': {
      const { outboxId, refusals } = trial
      if (refusals.length === 0)
        return { mark: 'ok', message: `we wrote each state to row ${outboxId} for a trial, and took it back` }
      const message = refusals.map(({ state, why }) => `row ${outboxId} cannot be told that it is ${state}: ${why}`)
      return { mark: 'problem', message: [...message, 'we took all of the trial back'].join('\n') }
    }
    default:
      return trial satisfies never
  }
}
