import { pino, stdTimeFunctions } from 'pino'
import type { FieldFault } from '../model/outbox.ts'
import type { Outcome } from '../model/service.ts'
import type { State } from '../model/submission.ts'
import type { Endpoint } from '../resources.ts'
import type { LineStream } from './logDestination.ts'
import { redactAndCut, redactError, withheldMark } from './redact.ts'
import { createRepeatedLineLog } from './repeats.ts'
import { traceIdOf } from './traceIds.ts'

/** `event` is a constant text. Values go into `fields`. */
export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

export interface FlushableLog extends Log {
  flush(): void
  /** Says why lines are lost, after another try to write; null if none are. */
  fault(): string | null
}

/**
 * Writes JSON lines: level, time (ISO 8601, UTC), event, allow-listed fields. Counts repeated warnings and errors, and
 * writes them once a minute with `repeated` and `lastAt`.
 *
 * @param level the lowest level that is written; `silent` writes nothing
 * @param hasTraces adds `trace_id` to lines of a record, as OpenTelemetry names it ("Trace Context in non-OTLP Log Formats")
 */
export function createLog(level: string, destination: LineStream, hasTraces = false): FlushableLog {
  const repeats = createRepeatedLineLog()
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  )
  const lineOf = (fields: LogFields) => {
    const { submissionId } = fields
    const line = allowed(fields)
    return hasTraces && typeof submissionId === 'string' ? { ...line, trace_id: traceIdOf(submissionId) } : line
  }
  const complain =
    (how: 'warn' | 'error') =>
    (event: string, fields: LogFields = {}): void => {
      const [line, text] = [lineOf(fields), redactAndCut(event)]
      repeats.tell(JSON.stringify([how, text, line]), (counted) =>
        logger[how](
          counted ? { ...line, repeated: counted.times, lastAt: new Date(counted.lastMs).toISOString() } : line,
          text,
        ),
      )
    }
  return {
    info: (event, fields = {}) => logger.info(lineOf(fields), redactAndCut(event)),
    warn: complain('warn'),
    error: complain('error'),
    flush() {
      repeats.flush()
      destination.writeKept()
    },
    fault: destination.fault,
  }
}

/**
 * Each function passes its value or withholds it. No field takes texts of the service or data of the client, which
 * `outboxd show ID` shows.
 */
const shapes = {
  submissionId: identifier,
  outboxId: identifier,
  state: word<State>,
  attempt: number,
  transactionId: identifier,
  endpoint: word<Endpoint>,
  outcome: word<Outcome | State>,
  /** E001 or an SQLSTATE. */
  code: word<string>,
  status: number,
  durationMs: number,
  lastedMs: number,
  until: moment,
  count: number,
  /** One word; sentences are withheld. */
  reason: word<string>,
  detail: sentence,
  fieldErrors,
  type: word<string>,
  loop: word<string>,
  /** Only the first hundred are written. */
  records,
  port: number,
  version: word<string>,
  error: redactError,
}

export type LogFields = { [Field in keyof typeof shapes]?: Parameters<(typeof shapes)[Field]>[0] | null | undefined }

/** Returns the fields that may leave this process, for logs and traces. */
export function allowed(fields: LogFields): Record<string, unknown> {
  const line: Record<string, unknown> = {}
  for (const [field, shape] of Object.entries<(value: never) => unknown>(shapes)) {
    const value = fields[field as keyof LogFields]
    if (value !== undefined && value !== null) line[field] = shape(value as never)
  }
  return line
}

/** Values of these forms are not searched for secrets, because no secret looks like this. */
const plainWord = /^[a-z_]{1,60}$/
const plainId = /^(\d{1,18}|[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12})$/

function word<Word extends string>(value: Word): unknown {
  if (typeof value !== 'string') return withheldMark
  if (plainWord.test(value)) return value
  return /^[\w.:+-]{1,60}$/.test(value) ? redactAndCut(value) : withheldMark
}

function sentence(value: string): unknown {
  return typeof value === 'string' ? redactAndCut(value.replace(/\s+/g, ' ')) : withheldMark
}

function moment(value: string): unknown {
  return typeof value === 'string' && /^[\d-]{10,13}T[\d:.]{8,12}Z$/.test(value) ? value : withheldMark
}

function fieldErrors(value: readonly FieldFault[]): unknown {
  if (!Array.isArray(value)) return withheldMark
  return value.slice(0, recordsMax).map(({ field, kind }: FieldFault) => ({ field: word(field), kind: word(kind) }))
}

function identifier(value: string | number): unknown {
  if (typeof value !== 'string') return number(value)
  if (plainId.test(value)) return value
  return /^[\x21-\x7e]{1,128}$/.test(value) ? redactAndCut(value) : withheldMark
}

function records(value: readonly RecordNames[]): unknown {
  return Array.isArray(value) ? value.slice(0, recordsMax).map(allowed) : withheldMark
}

interface RecordNames {
  submissionId?: string | number
  outboxId?: string
  transactionId?: string | null
}

const recordsMax = 100

function number(value: number): unknown {
  return typeof value === 'number' && Number.isFinite(value) ? value : withheldMark
}
