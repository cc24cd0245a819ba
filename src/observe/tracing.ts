import { randomBytes } from 'node:crypto'
import type { ClaimedSubmission } from '../model/dispatch.ts'
import type { CapturedRecord, ReportResult } from '../model/outbox.ts'
import type { Answer } from '../model/service.ts'
import type { State, Submission } from '../model/submission.ts'
import { type ResourceEndpoint, routeOf } from '../resources.ts'
import { allowed, type LogFields } from './log.ts'
import { redactAndCut } from './redact.ts'
import type { Attribute, Span } from './spanExporter.ts'
import { requestSpanIdOf, rootSpanIdOf, traceIdOf, traceparentOf } from './traceIds.ts'

interface TracingDeps {
  exporter: { add(span: Span): void }
  /** {base_url} of the service. */
  baseUrl: string
  nowMs(): number
}

interface SpanFacts {
  submissionId: string
  name: string
  tookMs: number
  isError: boolean
  /** What the log may say, the trace may say, too. */
  fields: LogFields
  http?: Attributes
}

type Attributes = Record<string, string | number | undefined>

/**
 * Makes the spans of records. `captured` is the parent of all others, and begins with the outbox row:
 *
 *     captured  queued  POST /api/v1/data  written back  GET /api/v1/data/{id}  …  written back
 */
export class Tracing {
  readonly #exporter: TracingDeps['exporter']
  readonly #baseUrl: string
  readonly #nowMs: () => number
  readonly traceparent = traceparentOf

  constructor({ exporter, baseUrl, nowMs }: TracingDeps) {
    this.#exporter = exporter
    this.#baseUrl = baseUrl
    this.#nowMs = nowMs
  }

  captured(record: Captured): void {
    const { id, outboxId, type, error, createdAt } = record
    const createdMs = Date.parse(createdAt ?? '')
    const tookMs = Number.isNaN(createdMs) ? 0 : this.#nowMs() - createdMs
    const fields: LogFields = { submissionId: id, outboxId, type, state: firstStateOf(record) }
    this.#add(
      { submissionId: id, name: 'captured', tookMs, isError: error !== null, fields },
      { spanId: rootSpanIdOf(id) },
    )
  }

  claimed({ id, outboxId, attempt, waitedMs }: Claimed): void {
    const fields: LogFields = { submissionId: id, outboxId, attempt }
    this.#addChild({ submissionId: id, name: 'queued', tookMs: waitedMs, isError: false, fields })
  }

  /** @param fields of the log line about the answer */
  answered(submission: Submission, endpoint: ResourceEndpoint, answer: Answer, fields: LogFields): void {
    const { method, path } = routeOf(endpoint)
    const template = method === 'GET' ? `${path}/{id}` : path
    // As the log has it, which withholds ids that are not plain.
    const asked = String(allowed({ transactionId: submission.transactionId ?? submission.id }).transactionId)
    const url = new URL(this.#baseUrl + path)
    const status = answer.kind === 'response' ? answer.status : undefined
    const http = {
      'http.request.method': method,
      'url.full': redactAndCut(method === 'GET' ? `${url}/${encodeURIComponent(asked)}` : url.href),
      'url.template': template,
      'server.address': url.hostname,
      'server.port': Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
      'http.response.status_code': status,
      'error.type': errorTypeOf(answer),
    }
    const isError = http['error.type'] !== undefined
    const facts = {
      submissionId: submission.id,
      name: `${method} ${template}`,
      tookMs: answer.tookMs,
      isError,
      fields,
      http,
    }
    this.#addChild(facts, requestSpanIdOf(submission))
  }

  reported({ report, code, problem }: ReportResult, tookMs: number): void {
    const { submissionId, outboxId, state } = report
    const fields: LogFields = { submissionId, outboxId, state, code, reason: problem?.kind }
    this.#addChild({ submissionId, name: 'written back', tookMs, isError: problem !== null, fields })
  }

  #add(facts: SpanFacts, ids: Pick<Span, 'spanId' | 'parentSpanId'>): void {
    const { submissionId, name, tookMs, isError, fields, http = {} } = facts
    const endMs = this.#nowMs()
    const ours = Object.entries(allowed(fields)).map(([field, value]) => [`outboxd.${toSnakeCase(field)}`, value])
    this.#exporter.add({
      traceId: traceIdOf(submissionId),
      ...ids,
      name,
      kind: facts.http === undefined ? 1 : 3,
      startTimeUnixNano: toNanoseconds(endMs - Math.max(0, tookMs)),
      endTimeUnixNano: toNanoseconds(endMs),
      attributes: toAttributes({ ...Object.fromEntries(ours), ...http }),
      status: { code: isError ? 2 : 0 },
    })
  }

  #addChild(facts: SpanFacts, spanId = randomBytes(8).toString('hex')): void {
    this.#add(facts, { spanId, parentSpanId: rootSpanIdOf(facts.submissionId) })
  }
}

type Captured = Pick<CapturedRecord, 'id' | 'outboxId' | 'type' | 'error' | 'discarded' | 'createdAt'>
type Claimed = Pick<ClaimedSubmission, 'id' | 'outboxId' | 'attempt' | 'waitedMs'>

function firstStateOf({ error, discarded = null }: Captured): State {
  if (discarded !== null) return 'discarded'
  return error === null ? 'queued' : 'rejected'
}

/** @see Semantic conventions for HTTP client spans: statuses from 400 are errors */
function errorTypeOf(answer: Answer): string | undefined {
  if (answer.kind === 'no-answer') return answer.cause
  return answer.status >= 400 ? String(answer.status) : undefined
}

/** To the microsecond. OTLP has no time before 1970. */
const toNanoseconds = (epochMs: number): string => String(BigInt(Math.round(Math.max(0, epochMs) * 1_000)) * 1_000n)

const toSnakeCase = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Leaves out values that are neither text nor numbers. */
export function toAttributes(values: Record<string, unknown>): Attribute[] {
  return Object.entries(values).flatMap(([key, value]): Attribute[] => {
    if (typeof value === 'string') return [{ key, value: { stringValue: value } }]
    return Number.isInteger(value) ? [{ key, value: { intValue: String(value) } }] : []
  })
}
