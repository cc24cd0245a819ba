import type { DatabaseConfig } from '../../config.ts'
import { readServedOutbox } from '../../ledger/binding.ts'
import { readServerVersion } from '../../ledger/operator/readServer.ts'
import { loadMappings, type Mappings } from '../../mapping/loadMappings.ts'
import { rowsBeforeStartMessage, startPositionMessage, wakeTriggerMessage } from '../../operations/databaseMessages.ts'
import { type Databases, withOutbox } from '../../operations/databases.ts'
import { readFirstWaitingRecordsThatFit } from '../../operations/mapRecords.ts'
import { countSomeWaitingRowsByType, readBacklog, type TypeCount } from '../../outbox/backlog.ts'
import { findCaptureProblems } from '../../outbox/captureTriggers.ts'
import { SourceFailed } from '../../outbox/contentQueries.ts'
import { examineSourceQueries } from '../../outbox/examineSourceQueries.ts'
import { findOutboxTableProblems } from '../../outbox/findOutboxTableProblems.ts'
import { findRowSecurityRemarks } from '../../outbox/findTableProblems.ts'
import { inspectOutboxTable } from '../../outbox/migrateOutbox.ts'
import type { OutboxTable } from '../../outbox/outboxTable.ts'
import { loadOutboxTable } from '../../outbox/readOutboxFile.ts'
import { readWaitingRows } from '../../outbox/readRows.ts'
import { countRowsBeforeStart, findStartQuestion, ignoredStartMessage } from '../../outbox/startPosition.ts'
import { surveyTable, unknownStatusAdvice, unknownStatusMessage } from '../../outbox/survey.ts'
import { tryWriteBack, type WriteBackTryResult } from '../../outbox/tryWriteBack.ts'
import { pluralize } from '../../plainText.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import { isConnectedWithoutPooler } from '../../postgres/sessionSettings.ts'
import { didYouMeanHint } from '../../yaml/nearestWord.ts'
import { openDatabasesOf } from '../terminal/operator.ts'
import { type Finding, type FindingMark, makeFinding, makeUncheckedFinding } from './finding.ts'
import { judgeWaitingRecords } from './mappings.ts'
import { checkMoney } from './money.ts'
import { checkIndexOfWaitingRows } from './waitingIndex.ts'

export async function checkOutboxAndTypes(config: DatabaseConfig): Promise<Finding[]> {
  const table = loadOutboxTable(config)
  const { version, problems, wakes } = await inspectOutbox(config, table)
  if (problems.length > 0)
    return [makeFinding('outbox', 'problem', ...problems), makeUncheckedFinding('types', 'the outbox has a problem')]
  let databases: Databases
  try {
    databases = await openDatabasesOf(config)
  } catch {
    const why = 'the ledger cannot be used. The table is fine: Postgres accepts each statement of the daemon'
    return [makeUncheckedFinding('outbox', why), makeUncheckedFinding('types', 'the ledger cannot be used')]
  }
  await using open = databases
  const [mark, message] = await readOutbox(open)
  return [
    makeFinding('outbox', mark, mark === 'ok' ? `PostgreSQL ${version}, ${message}${wakes}` : message),
    ...(await checkIndexOfWaitingRows(open.erp, table)),
    ...(await checkMappedRows(open, config, table)),
  ]
}

interface Inspected {
  version: string
  problems: string[]
  wakes: string
}

function inspectOutbox(config: DatabaseConfig, table: OutboxTable): Promise<Inspected> {
  const { databaseUrl: url, outboxTable } = config
  return inspectDatabase({
    of: 'outbox',
    url,
    async read(pool) {
      const problems = await findOutboxTableProblems(pool, table)
      const ours = table.file === null ? await inspectOutboxTable(pool, outboxTable) : null
      return {
        version: await readServerVersion(pool),
        problems,
        wakes: ours === null ? '' : `; ${(await isConnectedWithoutPooler(pool)) ? wakeTriggerMessage(ours) : pooled}`,
      }
    },
  })
}

/** LISTEN needs a session, which a pooler in transaction mode does not keep. */
const pooled = 'through this pooler no insert wakes the daemon, so rows wait up to a second'

type Judged = readonly [mark: FindingMark, message: string]

async function readOutbox(databases: Databases): Promise<Judged> {
  const { waiting } = await withOutbox(databases, readBacklog)
  await withOutbox(databases, (outbox) => readWaitingRows(outbox, 1))
  const untilMs = performance.now() + searchMaxMs
  const goOn = () => performance.now() < untilMs
  const served = await readServedOutbox(databases.ledger)
  const question = served.identity === null ? await withOutbox(databases, findStartQuestion) : null
  if (question !== null) return ['problem', question]
  const { statuses, isWhole } = await withOutbox(databases, (outbox) => surveyTable(outbox, goOn))
  if (statuses.length > 0) return ['warning', `${unknownStatusMessage(statuses, !isWhole)}. ${unknownStatusAdvice}`]
  const [mark, message] = judgeTrial(await withOutbox(databases, tryWriteBack), waiting)
  if (mark !== 'ok') return [mark, message]
  const notes = [
    startPositionMessage(served.start),
    rowsBeforeStartMessage(await withOutbox(databases, countRowsBeforeStart)),
    await withOutbox(databases, async ({ described }) => ignoredStartMessage(described, served)),
    ...(await withOutbox(databases, async (outbox) =>
      findRowSecurityRemarks(databases.erp, (await outbox.inspect()).shape.qualified),
    )),
  ].filter((note) => note !== null)
  return ['ok', [message, ...notes].join('; ')]
}

/** Enough for a check, because the daemon surveys the whole table each hour. */
const searchMaxMs = 10_000

function judgeTrial(trial: WriteBackTryResult, waiting: number): Judged {
  const count = `${pluralize(waiting, 'row')} ${waiting === 1 ? 'waits' : 'wait'}`
  switch (trial.kind) {
    case 'never-written':
      return ['ok', `${count}; nothing is written to the table`]
    case 'no-row':
      return [
        'ok',
        waiting === 0
          ? `${count}, so writing was not tried`
          : `${count}, but writing was not tried: other sessions have them locked`,
      ]
    case 'tried': {
      const { outboxId, refusals } = trial
      if (refusals.length === 0)
        return ['ok', `${count}; writing each state to row ${outboxId} works (tried and rolled back)`]
      const refused = refusals.map(
        ({ state, why }) => `the state ${state} cannot be written to row ${outboxId}: ${why}`,
      )
      return ['problem', [...refused, 'The trial was rolled back'].join('\n')]
    }
    default:
      return trial satisfies never
  }
}

/** Also plans the queries for contents, and tries them on waiting rows. */
async function checkMappedRows(
  databases: Databases,
  { mappingsDir }: DatabaseConfig,
  table: OutboxTable,
): Promise<Finding[]> {
  let mappings: Mappings
  try {
    mappings = loadMappings(mappingsDir)
  } catch {
    return [makeUncheckedFinding('types', 'the mapping files cannot be used')] // the finding `mappings` says why
  }
  const waiting = await withOutbox(databases, countSomeWaitingRowsByType)
  const unmapped = findUnmappedTypes(new Set(mappings.keys()), typesNamed(table), waiting)
  const names = waiting.map(({ type }) => type).join(', ')
  const { problems, warnings, trialResult } = await withOutbox(databases, (outbox) =>
    examineSourceQueries(outbox, mappings),
  )
  const captureProblems = await withOutbox(databases, (outbox) => findCaptureProblems(outbox, mappings))
  const findings: Finding[] = []
  if (unmapped.length > 0) findings.push(makeFinding('types', 'problem', ...unmapped))
  else
    findings.push(makeFinding('types', 'ok', names === '' ? 'no row waits' : `each type has a mapping file: ${names}`))
  if (problems.length > 0) findings.push(makeFinding('queries', 'problem', ...problems))
  else if (trialResult !== null)
    findings.push(makeFinding('queries', warnings.length > 0 ? 'warning' : 'ok', ...warnings, trialResult))
  if (captureProblems.length > 0) findings.push(makeFinding('change capture', 'problem', ...captureProblems))
  if (problems.length === 0) findings.push(...(await checkWaitingRows(databases, mappings, table)))
  return findings
}

const triedMax = 100

async function checkWaitingRows(databases: Databases, mappings: Mappings, table: OutboxTable): Promise<Finding[]> {
  try {
    const waiting = await withOutbox(databases, (outbox) => readFirstWaitingRecordsThatFit(outbox, mappings, triedMax))
    const money = await checkMoney(databases.erp, table, mappings, waiting.records)
    return [...judgeWaitingRecords(mappings, waiting), ...money]
  } catch (error) {
    if (error instanceof SourceFailed) return [] // the finding `queries` says why
    throw error
  }
}

const typesNamed = ({ type }: OutboxTable): string[] =>
  type.kind === 'constant' ? [type.type] : [...new Set(type.values.values())]

function findUnmappedTypes(
  mapped: ReadonlySet<string>,
  named: readonly string[],
  waiting: readonly TypeCount[],
): string[] {
  const counts = new Map(waiting.map(({ type, waiting }) => [type, waiting]))
  return [...new Set([...counts.keys(), ...named])]
    .filter((type) => !mapped.has(type))
    .map(
      (type) =>
        `rows of type "${type}" have no mapping file in MAPPINGS_DIR and will be rejected; waiting: ${counts.get(type) ?? 0}${didYouMeanHint(type, mapped)}`,
    )
}
