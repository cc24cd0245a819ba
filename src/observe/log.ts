import { pino, stdTimeFunctions } from 'pino'
import type { FieldFault, Outcome, State } from '../model.ts'
import type { Endpoint } from '../resources.ts'
import type { LineStream } from './logDestination.ts'
import { redact, showError, withheld } from './redact.ts'
import { createRepeats } from './repeats.ts'

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
  /** The HTTP status of an answer. */
  status?: number | undefined
  durationMs?: number | undefined
  /** How long something stood that is over, or stands. */
  lastedMs?: number | undefined
  /** A moment, ISO 8601. */
  until?: string | undefined
  count?: number | undefined
  /** One word of ours, such as a pause reason or a signal; a sentence is withheld. */
  reason?: string | undefined
  /** A sentence of ours: nothing that the service or the client said. */
  detail?: string | undefined
  /** What a record was rejected for: the field, by its name in the mapping file, and the kind of mistake. */
  fieldErrors?: readonly FieldFault[] | undefined
  type?: string | undefined
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

/** A log that holds back what repeats itself, and the lines of a moment to write them together. */
export interface CountingLog extends Log {
  /** Says now what was counted since it was last said, and writes what is kept. */
  flush(): void
}

/**
 * Writes JSON lines: level, time (ISO 8601, UTC), event, and the fields of the allow-list. A warning or error that
 * repeats one of the last minute is counted: one line a minute says so, with `repeated` and `lastAt`.
 *
 * @param level the least that is written; `silent` writes nothing
 */
export function createLog(level: string, destination: LineStream): CountingLog {
  const repeats = createRepeats()
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
  const complain =
    (how: 'warn' | 'error') =>
    (event: string, fields: LogFields = {}): void => {
      const [line, text] = [allowed(fields), redact(event)]
      repeats.tell(JSON.stringify([how, text, line]), (counted) =>
        logger[how](
          counted ? { ...line, repeated: counted.times, lastAt: new Date(counted.lastMs).toISOString() } : line,
          text,
        ),
      )
    }
  return {
    info: (event, fields = {}) => logger.info(allowed(fields), redact(event)),
    warn: complain('warn'),
    error: complain('error'),
    flush() {
      repeats.flush()
      destination.writeKept()
    },
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
  status: number,
  durationMs: number,
  lastedMs: number,
  until: moment,
  count: number,
  reason: word,
  detail: sentence,
  fieldErrors,
  type: word,
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

/** Ours, and no secret has their form: lower case without a sign between, digits, a uuid. Most values are, and are not searched. */
const plainWord = /^[a-z_]{1,60}$/
const plainId = /^(\d{1,18}|[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12})$/

function word(value: unknown): unknown {
  if (typeof value === 'string' && plainWord.test(value)) return value
  return typeof value === 'string' && /^[\w.:+-]{1,60}$/.test(value) ? redact(value) : withheld
}

function sentence(value: unknown): unknown {
  return typeof value === 'string' ? redact(value.replace(/\s+/g, ' ')) : withheld
}

function moment(value: unknown): unknown {
  return typeof value === 'string' && /^[\d-]{10,13}T[\d:.]{8,12}Z$/.test(value) ? value : withheld
}

function fieldErrors(value: unknown): unknown {
  if (!Array.isArray(value)) return withheld
  return value.slice(0, recordsMax).map(({ field, kind }: FieldFault) => ({ field: word(field), kind: word(kind) }))
}

function identifier(value: unknown): unknown {
  if (typeof value === 'number') return number(value)
  if (typeof value === 'string' && plainId.test(value)) return value
  return typeof value === 'string' && /^[\x21-\x7e]{1,128}$/.test(value) ? redact(value) : withheld
}

function records(value: unknown): unknown {
  return Array.isArray(value) ? value.slice(0, recordsMax).map(allowed) : withheld
}

const recordsMax = 100

function number(value: unknown): unknown {
  return typeof value === 'number' && Number.isFinite(value) ? value : withheld
}
