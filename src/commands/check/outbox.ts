import type { StoreConfig } from '../../config.ts'
import { readPublishedTypes } from '../../ledger/instances.ts'
import { readMissingLimits, readReadOnly, readServerVersion } from '../../ledger/operator/readServer.ts'
import { readServedOutbox } from '../../ledger/servedOutbox.ts'
import { loadMappings, type Mappings } from '../../mapping/loadMappings.ts'
import {
  countRowsOfUnknownStatus,
  describeOtherDaemons,
  findLedgerBesideOurs,
  findLostRows,
  findRowsPassedOver,
} from '../../operations/compareDatabases.ts'
import {
  hiddenMessage,
  historyMessage,
  readOnlyMessage,
  startMessage,
  wakeMessage,
} from '../../operations/databaseMessages.ts'
import { type Databases, withOutbox } from '../../operations/databases.ts'
import { countTypes, readBacklog, readInitialBacklog } from '../../outbox/backlog.ts'
import { captureProblems, readCaptureTrouble } from '../../outbox/captureTrouble.ts'
import { examineSources } from '../../outbox/examineSources.ts'
import { examineTable, findRemarks } from '../../outbox/examineTable.ts'
import { findPermissionProblems } from '../../outbox/findPermissionProblems.ts'
import { findShortIdColumns } from '../../outbox/findWriteProblems.ts'
import { findNearestTable } from '../../outbox/inspectTable.ts'
import { ledgerGapMessage } from '../../outbox/ledgerGap.ts'
import { inspectOutboxTable, type OutboxTableState } from '../../outbox/migrateOutbox.ts'
import { isMarkedOnCapture, type OutboxTable, splitTableName, standardTable } from '../../outbox/outboxTable.ts'
import { findUnusedSentColumns } from '../../outbox/propose/readAllWords.ts'
import { loadOutboxFile } from '../../outbox/readOutboxFile.ts'
import { readNew } from '../../outbox/readRows.ts'
import type { TypeCount } from '../../outbox/rowExpressions.ts'
import { rowsBehindCursorMessage } from '../../outbox/rowsBehindCursor.ts'
import { type SecondLedger, secondLedgerMessage } from '../../outbox/secondLedger.ts'
import { countHiddenRows } from '../../outbox/startPosition.ts'
import { tryWriteBack, type WriteBackTrial } from '../../outbox/tryWriteBack.ts'
import { unknownStatusAdvice, unknownStatusMessage } from '../../outbox/unknownStatuses.ts'
import { pluralize } from '../../plainText.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import { hasOwnSessions } from '../../postgres/sessionSettings.ts'
import { didYouMean } from '../../yaml/nearestWord.ts'
import { openDatabasesOf } from '../terminal/operator.ts'
import { type Finding, finding, type Mark, notAsked } from './finding.ts'
import { limitMessage } from './ledger.ts'

/**
 * Tries the outbox's table without the ledger, then looks at its rows.
 * @throws DatabaseUnusable if it cannot be reached, OutboxTableUnusable, FilesInvalid
 */
export async function checkOutbox(config: StoreConfig): Promise<Finding[]> {
  const described = loadOutboxFile(config.mappingsDir)
  const table = described ?? standardTable(config.outboxTable)
  const { version, problems, wakes, unused, shortIds } = await inspectOutbox(config, table)
  if (problems.length > 0) return [finding('outbox', 'problem', ...problems)]
  let databases: Databases
  try {
    databases = await openDatabasesOf(config)
  } catch {
    const why = 'the ledger cannot be used. The table can: Postgres would run each statement of the daemon'
    return [notAsked('outbox', why), notAsked('types', 'the ledger cannot be used')]
  }
  await using open = databases
  const [mark, message] = await readOutbox(open)
  const whole = mark === 'ok' ? `PostgreSQL ${version}, ${message}${wakes}` : message
  const isDoubtful = mark === 'ok' && unused.length > 0
  const second = await findLedgerBesideOurs(open)
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
  return `${columns.join(', ')} ${says} not looked at (state: none): what another program has sent is sent again. Read the column as the state (outboxd describe proposes how), name it in the filter, or begin behind the old rows (outboxd adopt --start)`
}

interface Inspected {
  version: string
  problems: string[]
  /** The end of a sentence; empty for a table that the ERP made. */
  wakes: string
  /** Columns that may say that a row was sent, if none is read for that. */
  unused: string[]
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
      // A table that our user must not see looks as if it did not exist.
      const hidden = missing.length === 0 ? [] : await findPermissionProblems(pool, table)
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

type Judged = readonly [mark: Mark, message: string]

/** Reads the table and tries to write to it, as the daemon does. */
async function readOutbox(databases: Databases): Promise<Judged> {
  const others = await describeOtherDaemons(databases)
  if (others !== null) return ['problem', others]
  const { waiting } = await withOutbox(databases, readBacklog)
  await withOutbox(databases, (outbox) => readNew(outbox, 1))
  const untilMs = performance.now() + compareMaxMs
  const goOn = () => performance.now() < untilMs
  const history = await withOutbox(databases, readInitialBacklog)
  const gap = await findLostRows(databases, goOn, history !== null)
  const named = history === null ? undefined : gap.rows.find(({ transactionId }) => transactionId !== null)
  if (named !== undefined) return ['problem', namedMessage(named.outboxId)]
  if (gap.rows.length > 0) return ['problem', ledgerGapMessage(gap)]
  const passed = await findRowsPassedOver(databases, goOn)
  if (passed.rows > 0)
    return ['warning', `${rowsBehindCursorMessage(passed)}. A daemon finds and takes them within the hour`]
  const unknown = await countRowsOfUnknownStatus(databases, goOn)
  if (unknown.statuses.length > 0) return ['warning', `${unknownStatusMessage(unknown)}. ${unknownStatusAdvice}`]
  const [mark, message] = judgeTrial(await withOutbox(databases, tryWriteBack))
  if (mark !== 'ok') return [mark, message]
  const start = startMessage((await readServedOutbox(databases.ledger)).start)
  const before = historyMessage(history)
  const hidden = hiddenMessage(await withOutbox(databases, countHiddenRows))
  const remarks = await withOutbox(databases, findRemarks)
  const also = [
    start === null ? '' : `. ${start}`,
    hidden === null ? '' : ` ${hidden}`,
    before === null ? '' : `; ${before}`,
    ...remarks.map((sentence) => `; note: ${sentence}`),
  ]
  return ['ok', `${pluralize(waiting, 'row')} ${waiting === 1 ? 'waits' : 'wait'}; ${message}${also.join('')}`]
}

const namedMessage = (outboxId: string) =>
  `row ${outboxId} names a transaction, and the ledger has no records: with that a daemon sends nothing until outboxd recover, as the ledger may have lost them. If the rows are of before outboxd: outboxd adopt --start id:N, the first row that is to be sent, before a daemon starts`

/** The daemon compares the whole table each hour. */
const compareMaxMs = 10_000

function judgeTrial(trial: WriteBackTrial): Judged {
  switch (trial.kind) {
    case 'never-written':
      return ['ok', 'nothing is written to the table']
    case 'no-row': {
      const why = trial.waits ? 'other sessions have each row that waits locked just now' : 'no row waits'
      return ['ok', `we could not try to write: ${why}`]
    }
    case 'tried': {
      const { outboxId, refusals } = trial
      if (refusals.length === 0) return ['ok', `we wrote each state to row ${outboxId} for a trial, and took it back`]
      const refused = refusals.map(({ state, why }) => `row ${outboxId} cannot be told that it is ${state}: ${why}`)
      return ['problem', [...refused, 'we took all of the trial back'].join('\n')]
    }
    default:
      return trial satisfies never
  }
}

const what = 'types'

/** Each type needs a mapping file, here or with a running daemon. */
async function checkTypes(databases: Databases, { mappingsDir }: StoreConfig, table: OutboxTable): Promise<Finding> {
  const here = mappingsHere(mappingsDir)
  if (here === null) return notAsked(what, 'the mapping files cannot be used')
  const elsewhere = await readPublishedTypes(databases.ledger)
  const known = new Set([...here.keys(), ...(elsewhere ?? [])])
  const waiting = await withOutbox(databases, countTypes)
  const problems = typeProblems(known, typesNamed(table), waiting)
  if (problems.length > 0) return finding(what, 'problem', ...problems)
  return finding(what, 'ok', waiting.length === 0 ? 'no row waits' : mappedMessage(waiting, isMarkedOnCapture(table)))
}

/** Plans the queries that read contents, and runs them on rows that wait. Returns nothing if there are none. */
async function checkSources(databases: Databases, { mappingsDir }: StoreConfig): Promise<Finding[]> {
  const mappings = mappingsHere(mappingsDir)
  if (mappings === null) return []
  const { problems, warnings, read } = await withOutbox(databases, (outbox) => examineSources(outbox, mappings))
  if (problems.length > 0) return [finding('queries', 'problem', ...problems)]
  if (read === null) return []
  return [finding('queries', warnings.length === 0 ? 'ok' : 'warning', ...warnings, read)]
}

function mappedMessage(waiting: readonly TypeCount[], doWait: boolean): string {
  return doWait
    ? `each row that waits has a mapping file: ${waiting.map(({ type, waiting }) => `${type} ${waiting}`).join(', ')}`
    : `each type of the rows from the position on has a mapping file: ${waiting.map(({ type }) => type).join(', ')}`
}

function mappingsHere(mappingsDir: string): Mappings | null {
  try {
    return loadMappings(mappingsDir)
  } catch {
    return null // the mappings' own finding says why
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

/** Names ERP tables whose changes are not captured, and rights lent to other roles; empty if all is well. */
export async function checkCapture({ databaseUrl: url }: StoreConfig): Promise<Finding[]> {
  const trouble = await inspectDatabase({ variable: 'DATABASE_URL', url, look: readCaptureTrouble }).catch(() => null)
  if (trouble === null || trouble.length === 0) return [] // a database that is away is told as the outbox
  return [
    finding(
      'change capture',
      'problem',
      ...captureProblems(trouble).map(({ subject, detail }) => `${subject}: ${detail}`),
      'Then capture what was noted: `select * from outboxd_capture.retry()` in the ERP’s database, as the role that installed it.',
    ),
  ]
}
