import type { StoreConfig } from '../../config.ts'
import { readPublishedTypes } from '../../ledger/instances.ts'
import { findMissingTimeoutSettings, readReadOnlyCause, readServerVersion } from '../../ledger/operator/readServer.ts'
import { readServedOutbox } from '../../ledger/servedOutbox.ts'
import { loadMappings, type Mappings } from '../../mapping/loadMappings.ts'
import {
  countRowsOfUnknownStatus,
  describeOtherDaemons,
  findLostRows,
  findRowsPassedByCursor,
  findSecondLedgerOfOutbox,
} from '../../operations/compareDatabases.ts'
import {
  hiddenRowsMessage,
  initialBacklogMessage,
  readOnlyMessage,
  startPositionMessage,
  wakeTriggerMessage,
} from '../../operations/databaseMessages.ts'
import { type Databases, withOutbox } from '../../operations/databases.ts'
import { countWaitingRowsByType, readBacklog, readInitialBacklog } from '../../outbox/backlog.ts'
import { changeCaptureProblems, readChangeCaptureFaults } from '../../outbox/changeCaptureFaults.ts'
import { examineSourceQueries } from '../../outbox/examineSourceQueries.ts'
import { findOutboxRemarks, findOutboxTableProblems } from '../../outbox/findOutboxTableProblems.ts'
import { findPermissionProblems } from '../../outbox/findPermissionProblems.ts'
import { findShortIdColumns } from '../../outbox/findWriteBackProblems.ts'
import { ledgerGapMessage } from '../../outbox/ledgerGap.ts'
import { inspectOutboxTable, type OutboxTableState } from '../../outbox/migrateOutbox.ts'
import { describeStandardTable, isMarkedOnCapture, type OutboxTable, splitTableName } from '../../outbox/outboxTable.ts'
import { findUndescribedSentColumns } from '../../outbox/propose/sentColumns.ts'
import { loadOutboxFile } from '../../outbox/readOutboxFile.ts'
import { readWaitingRows } from '../../outbox/readRows.ts'
import { findTableOfSimilarName } from '../../outbox/readTableShape.ts'
import type { TypeCount } from '../../outbox/rowExpressions.ts'
import { rowsBehindCursorMessage } from '../../outbox/rowsBehindCursor.ts'
import { type SecondLedger, secondLedgerMessage } from '../../outbox/secondLedger.ts'
import { countRowsBeforeStart } from '../../outbox/startPosition.ts'
import { tryWriteBack, type WriteBackTrial } from '../../outbox/tryWriteBack.ts'
import { unknownStatusAdvice, unknownStatusMessage } from '../../outbox/unknownStatuses.ts'
import { pluralize } from '../../plainText.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import { isConnectedWithoutPooler } from '../../postgres/sessionSettings.ts'
import { didYouMean } from '../../yaml/nearestWord.ts'
import { openDatabasesOf } from '../terminal/operator.ts'
import { type Finding, finding, type Mark, notAskedFinding } from './finding.ts'
import { missingTimeLimitsMessage } from './ledger.ts'

export async function checkOutbox(config: StoreConfig): Promise<Finding[]> {
  const described = loadOutboxFile(config.mappingsDir)
  const table = described ?? describeStandardTable(config.outboxTable)
  const { version, problems, wakes, unused, shortIds } = await inspectOutbox(config, table)
  if (problems.length > 0) return [finding('outbox', 'problem', ...problems)]
  let databases: Databases
  try {
    databases = await openDatabasesOf(config)
  } catch {
    const why = 'the ledger cannot be used. The table is fine: Postgres accepts each statement of the daemon'
    return [notAskedFinding('outbox', why), notAskedFinding('types', 'the ledger cannot be used')]
  }
  await using open = databases
  const [mark, message] = await readOutbox(open)
  const whole = mark === 'ok' ? `PostgreSQL ${version}, ${message}${wakes}` : message
  const isDoubtful = mark === 'ok' && unused.length > 0
  const second = await findSecondLedgerOfOutbox(open)
  return [
    isDoubtful ? finding('outbox', 'warning', unusedMessage(unused), whole) : finding('outbox', mark, whole),
    ...shortIds.map((message) => finding('transaction ids', 'warning', message)),
    ...(second === null ? [] : [judgeSecondLedger(second, table)]),
    await checkTypes(open, config, table),
    ...(await checkSources(open, config)),
  ]
}

const judgeSecondLedger = (second: SecondLedger, { state }: OutboxTable): Finding =>
  finding('ledgers', second.open > 0 || state === null ? 'problem' : 'warning', secondLedgerMessage(second))

function unusedMessage(columns: readonly string[]): string {
  const says = columns.length === 1 ? 'may say that a row was sent, and is' : 'may say that a row was sent, and are'
  return `${columns.join(', ')} ${says} not read (state: none), so rows that another program sent are sent again. Read the column as the state (see \`outboxd describe\`) or in the filter, or skip the old rows with \`outboxd adopt --start now\``
}

interface Inspected {
  version: string
  problems: string[]
  wakes: string
  /** Columns that may say that a row was sent, although `state: none` ignores them. */
  unused: string[]
  shortIds: string[]
}

function inspectOutbox(config: StoreConfig, table: OutboxTable): Promise<Inspected> {
  const { databaseUrl: url, outboxTable } = config
  return inspectDatabase({
    variable: 'DATABASE_URL',
    url,
    async look(pool) {
      const cause = await readReadOnlyCause(pool)
      const limits = await findMissingTimeoutSettings(pool)
      const ours = table.file === null ? await inspectOutboxTable(pool, outboxTable) : null
      const missing = ours === null ? [] : await tableProblems(pool, outboxTable, ours)
      // A table without permissions looks as if it did not exist.
      const hidden = missing.length === 0 ? [] : await findPermissionProblems(pool, table)
      const problems = [
        ...(cause === null ? [] : [readOnlyMessage({ of: 'outbox', cause })]),
        ...(hidden.length > 0 ? hidden : missing.length > 0 ? missing : await findOutboxTableProblems(pool, table)),
        ...(limits.length > 0 ? [missingTimeLimitsMessage(limits)] : []),
      ]
      const unused = problems.length === 0 ? await findUndescribedSentColumns(pool, table) : []
      return {
        version: await readServerVersion(pool),
        problems,
        wakes: ours === null ? '' : `; ${(await isConnectedWithoutPooler(pool)) ? wakeTriggerMessage(ours) : pooled}`,
        unused,
        shortIds: problems.length === 0 ? await findShortIdColumns(pool, table) : [],
      }
    },
  })
}

/** LISTEN needs a session, which a pooler in transaction mode does not keep. */
const pooled = 'through this pooler no insert wakes the daemon, so rows wait up to a second'

const ourColumns = ['id', 'type', 'key', 'payload', 'created_at']
const writtenColumns = ['status', 'transaction_id', 'error_code', 'error', 'updated_at']

async function tableProblems(
  db: Parameters<typeof findTableOfSimilarName>[0],
  name: string,
  { exists, columns }: OutboxTableState,
): Promise<string[]> {
  if (!exists) {
    const nearest = await findTableOfSimilarName(db, splitTableName(name))
    const ways = `create it with \`outboxd migrate --outbox\`, correct OUTBOX_TABLE, or describe your table with \`outboxd describe TABLE --write\``
    return [`there is no table ${name}${nearest === null ? '' : ` (did you mean "${nearest}"?)`}: ${ways}`]
  }
  const missing = [...ourColumns, ...writtenColumns].filter((column) => !columns.includes(column))
  if (missing.length === 0) return []
  return [
    `the table ${name} lacks ${missing.join(', ')}. If that is intended, describe it in mappings/outbox.yaml (\`outboxd describe ${name} --write\`)`,
  ]
}

type Judged = readonly [mark: Mark, message: string]

async function readOutbox(databases: Databases): Promise<Judged> {
  const others = await describeOtherDaemons(databases)
  if (others !== null) return ['problem', others]
  const { waiting } = await withOutbox(databases, readBacklog)
  await withOutbox(databases, (outbox) => readWaitingRows(outbox, 1))
  const untilMs = performance.now() + compareMaxMs
  const goOn = () => performance.now() < untilMs
  const history = await withOutbox(databases, readInitialBacklog)
  const gap = await findLostRows(databases, goOn, history !== null)
  const named = history === null ? undefined : gap.rows.find(({ transactionId }) => transactionId !== null)
  if (named !== undefined) return ['problem', namedMessage(named.outboxId)]
  if (gap.rows.length > 0) return ['problem', ledgerGapMessage(gap)]
  const passed = await findRowsPassedByCursor(databases, goOn)
  if (passed.rows > 0) return ['warning', `${rowsBehindCursorMessage(passed)}. A daemon captures them within an hour`]
  const unknown = await countRowsOfUnknownStatus(databases, goOn)
  if (unknown.statuses.length > 0) return ['warning', `${unknownStatusMessage(unknown)}. ${unknownStatusAdvice}`]
  const [mark, message] = judgeTrial(await withOutbox(databases, tryWriteBack))
  if (mark !== 'ok') return [mark, message]
  const start = startPositionMessage((await readServedOutbox(databases.ledger)).start)
  const before = initialBacklogMessage(history)
  const hidden = hiddenRowsMessage(await withOutbox(databases, countRowsBeforeStart))
  const remarks = await withOutbox(databases, findOutboxRemarks)
  const also = [
    start === null ? '' : `. ${start}`,
    hidden === null ? '' : ` ${hidden}`,
    before === null ? '' : `; ${before}`,
    ...remarks.map((sentence) => `; note: ${sentence}`),
  ]
  return ['ok', `${pluralize(waiting, 'row')} ${waiting === 1 ? 'waits' : 'wait'}; ${message}${also.join('')}`]
}

const namedMessage = (outboxId: string) =>
  `row ${outboxId} names a transaction, but the ledger has no records and may have lost them. Daemons send nothing until \`outboxd recover\`. If these rows are older than outboxd, run \`outboxd adopt --start id:N\` first, N being the first row to send`

/** The daemon compares the whole table each hour. */
const compareMaxMs = 10_000

function judgeTrial(trial: WriteBackTrial): Judged {
  switch (trial.kind) {
    case 'never-written':
      return ['ok', 'nothing is written to the table']
    case 'no-row': {
      const why = trial.waits ? 'other sessions lock every waiting row' : 'no row waits'
      return ['ok', `writing was not tried: ${why}`]
    }
    case 'tried': {
      const { outboxId, refusals } = trial
      if (refusals.length === 0) return ['ok', `each state could be written to row ${outboxId}, and was rolled back`]
      const refused = refusals.map(
        ({ state, why }) => `the state ${state} cannot be written to row ${outboxId}: ${why}`,
      )
      return ['problem', [...refused, 'The trial was rolled back'].join('\n')]
    }
    default:
      return trial satisfies never
  }
}

const what = 'types'

async function checkTypes(databases: Databases, { mappingsDir }: StoreConfig, table: OutboxTable): Promise<Finding> {
  const here = mappingsHere(mappingsDir)
  if (here === null) return notAskedFinding(what, 'the mapping files cannot be used')
  const elsewhere = await readPublishedTypes(databases.ledger)
  const known = new Set([...here.keys(), ...(elsewhere ?? [])])
  const waiting = await withOutbox(databases, countWaitingRowsByType)
  const problems = typeProblems(known, typesNamed(table), waiting)
  if (problems.length > 0) return finding(what, 'problem', ...problems)
  return finding(what, 'ok', waiting.length === 0 ? 'no row waits' : mappedMessage(waiting, isMarkedOnCapture(table)))
}

/** Plans the queries that read contents, and runs them on waiting rows. */
async function checkSources(databases: Databases, { mappingsDir }: StoreConfig): Promise<Finding[]> {
  const mappings = mappingsHere(mappingsDir)
  if (mappings === null) return []
  const { problems, warnings, read } = await withOutbox(databases, (outbox) => examineSourceQueries(outbox, mappings))
  if (problems.length > 0) return [finding('queries', 'problem', ...problems)]
  if (read === null) return []
  return [finding('queries', warnings.length === 0 ? 'ok' : 'warning', ...warnings, read)]
}

function mappedMessage(waiting: readonly TypeCount[], doWait: boolean): string {
  return doWait
    ? `every waiting row has a mapping file: ${waiting.map(({ type, waiting }) => `${type} ${waiting}`).join(', ')}`
    : `every type from the position on has a mapping file: ${waiting.map(({ type }) => type).join(', ')}`
}

function mappingsHere(mappingsDir: string): Mappings | null {
  try {
    return loadMappings(mappingsDir)
  } catch {
    return null // the finding `mappings` says why
  }
}

const typesNamed = ({ type }: OutboxTable): string[] =>
  type.kind === 'constant' ? [type.type] : [...new Set(type.values.values())]

function typeProblems(known: ReadonlySet<string>, named: readonly string[], waiting: readonly TypeCount[]): string[] {
  const counts = new Map(waiting.map(({ type, waiting }) => [type, waiting]))
  const unknown = [...new Set([...counts.keys(), ...named])].filter((type) => !known.has(type))
  return unknown.map((type) => {
    const rows = counts.get(type) ?? 0
    const wait = rows === 0 ? 'none waits now' : `${rows} ${rows === 1 ? 'waits' : 'wait'}`
    const which = type === '' ? 'rows without a type' : `rows of type "${type}"`
    return `${which} have no mapping file and will be rejected; ${wait}${didYouMean(type, known)}`
  })
}

/** Names ERP tables whose changes are not captured, and permissions lent to other roles. */
export async function checkChangeCapture({ databaseUrl: url }: StoreConfig): Promise<Finding[]> {
  const trouble = await inspectDatabase({ variable: 'DATABASE_URL', url, look: readChangeCaptureFaults }).catch(
    () => null,
  )
  if (trouble === null || trouble.length === 0) return [] // an unreachable database is the finding `outbox`
  return [
    finding(
      'change capture',
      'problem',
      ...changeCaptureProblems(trouble).map(({ subject, detail }) => `${subject}: ${detail}`),
      'Then capture the noted changes: run `select * from outboxd_capture.retry()` in the ERP’s database, as the role that installed it.',
    ),
  ]
}
