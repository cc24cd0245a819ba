import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { type AuditEntry, type AuditSpan, readAuditEntries } from '../../ledger/audit/readAuditEntries.ts'
import { type OperatorLogPosition, readOperatorLog } from '../../ledger/audit/readOperatorActs.ts'
import { findSubmissions, type ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import { auditCsv, auditCsvHead, auditLine, readAmountFieldNames } from '../../operations/audit.ts'
import type { Databases } from '../../operations/databases.ts'
import { readTimeSpan, type Span } from '../../operations/filters.ts'
import { readRecordName } from '../../operations/references.ts'
import { isoTimeOrNull } from '../../time.ts'
import { consoleErrorMessage } from '../errors.ts'
import { textAsTyped } from '../html/form.ts'
import { layout, sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { logDownload } from '../valueAccess.ts'
import { type AuditQuery, auditHtml } from './auditHtml.ts'

const pageRows = 100

export function auditRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  app.get('/audit', async ({ viewer, query: parameters }, reply) => {
    const { query, span, record, problems, before } = readAuditQuery(parameters, parts.clock.nowMs())
    const databases = await parts.databases()
    const filter = { ...span, who: query.who ?? null, key: query.key ?? null, record }
    const page =
      problems.length > 0
        ? { hands: [], next: null }
        : await readOperatorLog(databases.ledger, filter, before, pageRows)
    const shown = layout(
      { title: 'Audit', current: '/audit', viewer },
      auditHtml({ query, problems, acts: page.hands, next: page.next }),
    )
    return sendPage(reply.code(problems.length > 0 ? 400 : 200), shown)
  })
  app.get('/audit.csv', async ({ query: parameters, viewer }, reply) => {
    const { query, span, record, problems } = readAuditQuery(parameters, parts.clock.nowMs())
    if (problems.length > 0) return reply.status(400).type('text/plain; charset=utf-8').send(problems.join('\n'))
    const databases = await parts.databases()
    const asked = { ...span, key: query.key ?? null, record, type: null, containing: null }
    const csv = await beginCsv(databases, asked, parts)
    const { sinceMs, untilMs } = span
    const detail = { file: 'audit.csv', since: isoTimeOrNull(sinceMs), until: isoTimeOrNull(untilMs) }
    await logDownload(parts, viewer, await recordsOf(databases, asked), detail)
    return reply
      .type('text/csv; charset=utf-8')
      .header('content-disposition', 'attachment; filename="audit.csv"')
      .send(Readable.from(csv))
  })
}

async function recordsOf(databases: Databases, { key, record }: AuditSpan): Promise<ListedSubmission[] | null> {
  if (record !== null)
    return 'id' in record
      ? findSubmissions(databases.ledger, { kind: 'range', from: record.id, to: record.id }, countedMax)
      : findSubmissions(databases.ledger, { kind: 'outbox', value: record.outboxId }, countedMax)
  return key === null ? null : findSubmissions(databases.ledger, { kind: 'key', value: key }, countedMax)
}

const countedMax = 1_000

/** Reads the first entry before the answer begins, so that an unreadable ledger is an error and not an empty CSV. */
async function beginCsv(databases: Databases, span: AuditSpan, parts: ConsoleParts): Promise<AsyncGenerator<string>> {
  const entries = readAuditEntries(databases.ledger, span)
  const first = await entries.next()
  return csvOf(first, entries, parts)
}

/** If reading fails, breaks off the download, so that the browser notices. */
async function* csvOf(
  first: IteratorResult<AuditEntry, void>,
  others: AsyncIterable<AuditEntry>,
  { config, say }: ConsoleParts,
): AsyncGenerator<string> {
  const names = readAmountFieldNames(config.mappingsDir)
  yield auditCsvHead(names)
  if (first.done) return
  yield auditCsv(auditLine(first.value), names)
  try {
    for await (const entry of others) yield auditCsv(auditLine(entry), names)
  } catch (error) {
    say(`the download of /audit.csv broke off: ${consoleErrorMessage(error)}`)
    throw error
  }
}

function readAuditQuery(parameters: unknown, nowMs: number) {
  const text = (name: string) => textAsTyped(parameters, name) || undefined
  const query: AuditQuery = {
    ...{ since: text('since'), until: text('until'), who: text('who'), key: text('key'), record: text('record') },
  }
  const read = readTimeSpan(query, nowMs)
  const mistakes = read.kind === 'invalid' ? read.problems : []
  const record = readRecordName(query.record, mistakes)
  const problems = mistakes.map((problem) => problem.replace('--', ''))
  const span: Span = read.kind === 'value' ? read.value : { sinceMs: null, untilMs: null }
  return { query, span, record, problems, before: positionOf(text('event'), text('act')) }
}

function positionOf(event: string | undefined, act: string | undefined): OperatorLogPosition | null {
  const isId = (id: string | undefined): id is string => id !== undefined && /^\d{1,18}$/.test(id)
  return isId(event) && isId(act) ? { event, act } : null
}
