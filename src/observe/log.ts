import { type DestinationStream, destination as openDestination, pino, stdTimeFunctions } from 'pino'
import type { Outcome, State } from '../model.ts'
import type { Endpoint } from '../resources.ts'
import { redact, showError, withheld } from './redact.ts'

/**
 * All that a log line may hold beside its event. There is no field for the service's words or the client's data:
 * they may be about persons, and `outboxd show ID` has them.
 */
export interface LogFields {
  submissionId?: string | number | undefined
  outboxId?: string | undefined
  state?: State | undefined
  attempt?: number | undefined
  transactionId?: string | null | undefined
  endpoint?: Endpoint | undefined
  outcome?: Outcome | State | undefined
  /** An error code such as E001 or an SQLSTATE. */
  code?: string | null | undefined
  durationMs?: number | undefined
  count?: number | undefined
  /** One word of ours, such as a pause reason or a signal; a sentence is withheld. */
  reason?: string | undefined
  loop?: string | undefined
  /** Those that it is about, where they are several; the first hundred are written. */
  records?: readonly Pick<LogFields, 'submissionId' | 'outboxId' | 'transactionId'>[] | undefined
  port?: number | undefined
  version?: string | undefined
  /** Whatever was thrown; reduced to its class, its redacted message and its code. */
  error?: unknown
}

/** One wide line per event. `event` is a constant text of ours: what happened, no values in it. */
export interface Log {
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

/**
 * Writes JSON lines: level, time (ISO 8601, UTC), event, and the fields of the allow-list.
 *
 * @param level       the least that is written; `silent` writes nothing
 * @param destination stdout unless given; written synchronously, so that the last line before an end is not lost
 */
export function createLog(level: string, destination: DestinationStream = openDestination({ fd: 1, sync: true })): Log {
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
  return {
    info: (event, fields = {}) => logger.info(allowed(fields), redact(event)),
    warn: (event, fields = {}) => logger.warn(allowed(fields), redact(event)),
    error: (event, fields = {}) => logger.error(allowed(fields), redact(event)),
  }
}

/** What the types say is also kept at run time: a field that is not listed here is not written. */
const shapes: Record<keyof LogFields, (value: unknown) => unknown> = {
  submissionId: identifier,
  outboxId: identifier,
  state: word,
  attempt: number,
  transactionId: identifier,
  endpoint: word,
  outcome: word,
  code: word,
  durationMs: number,
  count: number,
  reason: word,
  loop: word,
  records,
  port: number,
  version: word,
  error: showError,
}

function allowed(fields: LogFields): Record<string, unknown> {
  const line: Record<string, unknown> = {}
  for (const [field, shape] of Object.entries(shapes)) {
    const value = fields[field as keyof LogFields]
    if (value !== undefined && value !== null) line[field] = shape(value)
  }
  return line
}

function word(value: unknown): unknown {
  return typeof value === 'string' && /^[\w.:+-]{1,60}$/.test(value) ? redact(value) : withheld
}

function identifier(value: unknown): unknown {
  if (typeof value === 'number') return number(value)
  return typeof value === 'string' && /^[\x21-\x7e]{1,128}$/.test(value) ? redact(value) : withheld
}

function records(value: unknown): unknown {
  return Array.isArray(value) ? value.slice(0, recordsMax).map(allowed) : withheld
}

const recordsMax = 100

function number(value: unknown): unknown {
  return typeof value === 'number' && Number.isFinite(value) ? value : withheld
}
