import { type KindScenario, kindScenarios, type RecordKind, recordKinds } from './recordKinds.ts'

/** What three sources say that do not know of each other. */
export interface Evidence {
  written: readonly WrittenRecord[]
  /** The sandbox's ledger: the POSTs that arrived, raw. */
  arrivals: readonly LedgerRow[]
  outbox: readonly OutboxRow[]
}

/** A record as the ERP's own table has it. */
export interface WrittenRecord {
  /** The order number, which the payload carries through to the service. */
  reference: string
  kind: RecordKind
  /** Decimal text, as Postgres wrote it. */
  amount: string
}

/** A request as `GET /_sandbox/ledger` gives it. */
export interface LedgerRow {
  endpoint: string
  /** As it arrived. */
  body: string | null
  /** Null where the connection was dropped. */
  status: number | null
  transactionId: string | null
  orderId: string | null
}

export interface OutboxRow {
  reference: string | null
  status: string
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

export interface Verification {
  kinds: KindVerification[]
  /** Every way in which the truth differs from what should be, one sentence each; none when all is well. */
  problems: string[]
}

export interface KindVerification extends KindScenario {
  kind: RecordKind
  written: number
  /** How many ended as what: state, and code where there is one. */
  endedAs: Map<string, number>
  /** How many are at the service exactly as often as they should be: once, or not at all. */
  exactly: number
  /** How many arrived with the ERP's amount. */
  equal: number
}

/** Compares what the ERP wrote with what the service has and with what the outbox says. Pure. */
export function verify({ written, arrivals, outbox }: Evidence): Verification {
  const read = arrivals.map(readArrival)
  const arrivalsOf = Map.groupBy(read, ({ reference }) => reference)
  const rowsOf = Map.groupBy(outbox, ({ reference }) => reference)
  const verified = written.map((record) =>
    verifyRecord(record, arrivalsOf.get(record.reference) ?? [], rowsOf.get(record.reference) ?? []),
  )
  const known = new Set<string | null>(written.map(({ reference }) => reference))
  return {
    kinds: recordKinds.map((kind) => summarize(kind, verified)).filter((each) => each.written > 0),
    problems: [
      ...verified.flatMap(({ problems }) => problems),
      ...strangers('the service was sent', arrivalsOf, known),
      ...strangers('the outbox holds', rowsOf, known),
    ],
  }
}

interface Arrival {
  reference: string | null
  amount: string | null
  /** Whether the service looked at it: 401 and 429 turn a request away unread. */
  wasRead: boolean
  keptAs: string | null
}

interface VerifiedRecord {
  kind: RecordKind
  endedAs: string[]
  exactly: boolean
  equal: boolean
  problems: string[]
}

function verifyRecord(record: WrittenRecord, arrivals: readonly Arrival[], rows: readonly OutboxRow[]): VerifiedRecord {
  const { reference, kind, amount } = record
  const scenario = kindScenarios[kind]
  const read = arrivals.filter(({ wasRead }) => wasRead)
  const kept = arrivals.flatMap(({ keptAs }) => keptAs ?? [])
  const exactly = read.length === scenario.requests && kept.length === scenario.kept
  const equal = read.length > 0 && read.every((arrival) => equalToTheCent(arrival.amount, amount))
  const problems: string[] = []
  if (!exactly)
    problems.push(
      `the service read it ${times(read.length)} and kept it ${times(kept.length)}, not ${times(scenario.requests)} and ${times(scenario.kept)}`,
    )
  if (read.length > 0 && !equal)
    problems.push(
      `the ERP wrote the amount ${amount}, the service was sent ${read.map((each) => each.amount).join(', ')}`,
    )
  problems.push(...verifyRows(rows, scenario, kept))
  return {
    kind,
    endedAs: rows.map(inMessage),
    exactly,
    equal,
    problems: problems.map((problem) => `${reference} (${scenario.label}): ${problem}`),
  }
}

function verifyRows(rows: readonly OutboxRow[], scenario: KindScenario, kept: readonly string[]): string[] {
  const [row, ...more] = rows
  if (row === undefined) return ['it is not in the outbox']
  const problems = more.length > 0 ? [`it is in the outbox ${times(rows.length)}`] : []
  const { label: _, endsAs, errorCode } = scenario
  if (row.status !== endsAs || row.errorCode !== errorCode)
    problems.push(`it ended as ${inMessage(row)}, not as ${inMessage({ status: endsAs, errorCode })}`)
  if (endsAs === 'rejected' && !row.error) problems.push('the outbox does not say why it was rejected')
  if (endsAs === 'completed' && kept.length === 1 && row.transactionId !== kept[0])
    problems.push(`the outbox names ${row.transactionId ?? 'no transaction'}, the service kept it as ${kept[0]}`)
  return problems
}

function summarize(kind: RecordKind, all: readonly VerifiedRecord[]): KindVerification {
  const verified = all.filter((each) => each.kind === kind)
  const groups = Map.groupBy(
    verified.flatMap(({ endedAs }) => endedAs),
    (message) => message,
  )
  return {
    ...kindScenarios[kind],
    kind,
    written: verified.length,
    endedAs: new Map([...groups].map(([message, members]) => [message, members.length])),
    exactly: verified.filter(({ exactly }) => exactly).length,
    equal: verified.filter(({ equal }) => equal).length,
  }
}

function strangers(what: string, of: Map<string | null, unknown[]>, known: Set<string | null>): string[] {
  return [...of]
    .filter(([reference]) => !known.has(reference))
    .map(
      ([reference, rows]) =>
        `${what} ${reference ?? 'something unreadable'} ${times(rows.length)}: the ERP never wrote it`,
    )
}

const turnedAwayUnread: readonly (number | null)[] = [401, 429]

function readArrival({ endpoint, body, status, transactionId, orderId }: LedgerRow): Arrival {
  const { reference, amount } = endpoint === 'order' ? readOrder(body) : readData(body)
  return { reference, amount, wasRead: !turnedAwayUnread.includes(status), keptAs: transactionId ?? orderId }
}

function readData(body: string | null): { reference: string | null; amount: string | null } {
  const data = at(parseDigits(body), 'data')
  return { reference: text(at(data, 'field2')), amount: text(at(data, 'total_amount')) }
}

function readOrder(body: string | null): { reference: string | null; amount: string | null } {
  const item = at(at(parseDigits(body), 'items'), '0')
  return { reference: text(at(item, 'orderNumber')), amount: text(at(item, 'price')) }
}

/** Parses JSON with each number as the digits that were sent: through a double, the last cent could be lost. */
function parseDigits(body: string | null): unknown {
  try {
    return JSON.parse(body ?? '', (_, value, { source }) => (typeof value === 'number' ? source : value))
  } catch {
    return null
  }
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Compares digits with digits. What is no plain number of whole cents is equal to nothing. */
function equalToTheCent(one: string | null, other: string): boolean {
  const cents = inCents(one ?? '')
  return cents !== null && cents === inCents(other)
}

function inCents(amount: string): bigint | null {
  const match = /^(-?\d+)(?:\.(\d{1,2}))?$/.exec(amount)
  return match === null ? null : BigInt(`${match[1]}${(match[2] ?? '').padEnd(2, '0')}`)
}

function inMessage({ status, errorCode }: Pick<OutboxRow, 'status' | 'errorCode'>): string {
  return errorCode === null ? status : `${status} (${errorCode})`
}

function times(count: number): string {
  return ['never', 'once', 'twice'][count] ?? `${count} times`
}
