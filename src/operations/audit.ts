import type { AuditEntry, AuditedRecord, AuditStep } from '../ledger/audit/readAuditEntries.ts'
import type { AuditedAct } from '../ledger/audit/readOperatorActs.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import type { Amounts } from '../model/outbox.ts'
import type { State } from '../model/submission.ts'
import { escapeControl, pluralize, renderTable, truncateToOneLine } from '../plainText.ts'
import { formatInstant, formatIsoInstant, formatIsoInstantOrNull, replaceEpochMsByIsoTimes } from '../time.ts'
import { csvLine } from './spreadsheet.ts'

/** For CSV columns; empty if the mapping files are broken. */
export function tryReadAmountFieldNames(mappingsDir: string): string[] {
  try {
    const fields = [...loadMappings(mappingsDir).values()].flatMap((mapping) => mapping.fields)
    return [...new Set(fields.flatMap(({ name, isAmount }) => (isAmount ? [name] : [])))].toSorted()
  } catch {
    return []
  }
}

export interface AuditSum {
  month: string | null
  type: string
  outcome: State
  currency: string | null
  records: number
  /** Records that never mapped. */
  withoutAmounts: number
  /** Records whose amounts may be of several currencies, so they are in no total. */
  notAdded: number
  amounts: Amounts
}

export type AuditSums = Map<string, AuditSum>

export function addToAuditSums(sums: AuditSums, line: AuditEntry): void {
  if (line.kind === 'act') return
  const month = line.endedMs === null ? null : formatIsoInstant(line.endedMs).slice(0, 7)
  const { type, state: outcome, amounts: given, currency } = line
  const group = JSON.stringify([month ?? '9', type, outcome, currency ?? ''])
  const none = { month, type, outcome, currency, records: 0, withoutAmounts: 0, notAdded: 0, amounts: {} }
  const { records, withoutAmounts, notAdded, amounts, ...sum } = sums.get(group) ?? none
  const added: Record<string, string> = { ...amounts }
  const decimals = Object.entries(given ?? {}).filter(([, value]) => /^-?\d+(\.\d+)?$/.test(value))
  const hasAmounts = decimals.length > 0
  const isOneCurrency = currency !== null && !currency.includes('+')
  if (isOneCurrency) for (const [name, value] of decimals) added[name] = addDecimals(added[name] ?? '0', value)
  sums.set(group, {
    ...sum,
    records: records + 1,
    withoutAmounts: withoutAmounts + (hasAmounts ? 0 : 1),
    notAdded: notAdded + (hasAmounts && !isOneCurrency ? 1 : 0),
    amounts: added,
  })
}

/** Records that have not ended come last. */
export const sortAuditSums = (sums: AuditSums): AuditSum[] =>
  [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)

export function addDecimals(a: string, b: string): string {
  const scale = Math.max(decimalsOf(a), decimalsOf(b))
  const scaled = (text: string) => BigInt(text.replace('.', '') + '0'.repeat(scale - decimalsOf(text)))
  const sum = scaled(a) + scaled(b)
  const digits = String(sum < 0n ? -sum : sum).padStart(scale + 1, '0')
  const whole = digits.slice(0, digits.length - scale)
  return `${sum < 0n ? '-' : ''}${whole}${scale === 0 ? '' : `.${digits.slice(-scale)}`}`
}

const decimalsOf = (text: string) => text.split('.')[1]?.length ?? 0

/** True if a person whose name has this part acted, whatever the case of its letters. */
export function isByWho(line: AuditEntry, who: string): boolean {
  const names = line.kind === 'act' ? [line.who] : line.hands.map((step) => step.who ?? '')
  return names.some((name) => name.toLowerCase().includes(who.toLowerCase()))
}

export function auditLineJson(line: AuditEntry) {
  if (line.kind !== 'record') return replaceEpochMsByIsoTimes(line)
  const { steps, hands, error: _, wasSent: __, idempotencyKey: ___, sinceMs: ____, revision: _____, ...shown } = line
  return {
    ...replaceEpochMsByIsoTimes(shown),
    steps: steps.map(replaceEpochMsByIsoTimes),
    hands: hands.map(replaceEpochMsByIsoTimes),
  }
}

type Cell = string | null

const recordCells: Readonly<Record<string, (record: AuditedRecord) => Cell>> = {
  kind: ({ kind }) => kind,
  at: ({ endedMs }) => formatIsoInstantOrNull(endedMs),
  outbox_id: ({ outboxId }) => outboxId,
  type: ({ type }) => type,
  key: ({ key }) => key,
  outcome: ({ state }) => state,
  code: ({ code }) => code,
  amounts: ({ amounts }) => showAmounts(amounts),
  transaction_id: ({ transactionId }) => transactionId,
  attempts: ({ attempts }) => String(attempts),
  recorded: ({ recordedMs }) => formatIsoInstant(recordedMs),
  captured: ({ capturedMs }) => formatIsoInstant(capturedMs),
  sent: ({ sentMs }) => formatIsoInstantOrNull(sentMs),
  accepted: ({ acceptedMs }) => formatIsoInstantOrNull(acceptedMs),
  ended: ({ endedMs }) => formatIsoInstantOrNull(endedMs),
  steps: ({ steps }) =>
    steps
      .map((step) => `${formatIsoInstant(step.atMs)} ${step.to}: ${truncateToOneLine(messageOf(step), 200)}`)
      .join('; '),
  hands: ({ hands }) => hands.map(showOperatorStep).join('; '),
  emptied: ({ emptiedMs }) => formatIsoInstantOrNull(emptiedMs),
  erased: ({ erasedMs }) => formatIsoInstantOrNull(erasedMs),
  submission_id: ({ id }) => id,
  customer: ({ customer }) => customer,
  currency: ({ currency }) => currency,
  may_have_arrived: ({ mayHaveArrived }) => (mayHaveArrived ? 'yes' : null),
}

/** All records of an act share a cell, so that an act is one line. */
function actCells(line: AuditedAct): Record<string, Cell> {
  const shared = (values: readonly Cell[]) => values.map((value) => value ?? '').join('; ')
  return {
    kind: line.act,
    at: formatIsoInstant(line.atMs),
    outbox_id: shared(line.records.map(({ outboxId }) => outboxId)),
    type: shared([...new Set(line.records.map(({ type }) => type))]),
    key: shared(line.records.map(({ key }) => key)),
    ended: formatIsoInstantOrNull(line.untilMs),
    hands: showAuditedAct(line),
    submission_id: shared(line.records.map(({ id }) => id)),
  }
}

export const auditCsvHeaderLine = (amountNames: readonly string[]): string =>
  csvLine([...Object.keys(recordCells), ...amountNames.map(amountColumn)])

export function auditLineCsv(line: AuditEntry, amountNames: readonly string[]): string {
  const ofAct = line.kind === 'act' ? actCells(line) : null
  const cells = Object.entries(recordCells).map(([name, cellOf]) =>
    line.kind === 'act' ? ofAct?.[name] : cellOf(line),
  )
  const amounts = amountNames.map((name) => (line.kind === 'act' ? null : line.amounts?.[name]))
  return csvLine([...cells, ...amounts].map((cell) => escapeControl(cell ?? '')))
}

const amountColumn = (name: string) => `amount_${name}`

export function auditSumsCsv(sums: readonly AuditSum[]): string {
  const names = [...new Set(sums.flatMap((sum) => Object.keys(sum.amounts)))].toSorted()
  const head = ['month', 'type', 'outcome', 'currency', 'records', 'without_amounts', 'not_added']
  const rows = sums.map(({ month, type, outcome, currency, records, withoutAmounts, notAdded, amounts }) => [
    ...[month, type, outcome, currency, records, withoutAmounts, notAdded],
    ...names.map((name) => amounts[name]),
  ])
  const lines = rows.map((cells) => csvLine(cells.map((cell) => escapeControl(String(cell ?? '')))))
  return csvLine([...head, ...names.map(amountColumn)]) + lines.join('')
}

export function auditSumsText(sums: readonly AuditSum[]): string {
  const someOf = (count: number) => (count === 0 ? '' : String(count))
  const rows = sums.map(({ month, type, outcome, currency, records, withoutAmounts, notAdded, amounts }) => [
    ...[month ?? 'not ended', type, outcome, String(records), someOf(withoutAmounts), someOf(notAdded)],
    ...[currency ?? (notAdded > 0 ? 'unknown' : ''), showAmounts(amounts)],
  ])
  const head = ['month', 'type', 'outcome', 'records', 'without amounts', 'not added', 'currency', 'amounts']
  return renderTable(head, rows)
}

const stateWidth = 9

export function auditLineText(line: AuditEntry): string {
  const parts = line.kind === 'act' ? [formatInstant(line.atMs), showAuditedAct(line)] : recordParts(line)
  return `${escapeControl(parts.filter((part) => part !== '').join('  '))}\n`
}

function recordParts(line: AuditedRecord): string[] {
  const transaction = line.transactionId === null ? '' : `as ${line.transactionId}`
  const at = line.endedMs === null ? 'not ended yet       ' : formatInstant(line.endedMs)
  const first = [at, line.state.padEnd(stateWidth), `outbox:${line.outboxId}`, line.type]
  const key = line.key === null ? '' : `key ${truncateToOneLine(line.key, 40)}`
  const keyOrErased = line.erasedMs === null ? key : `erased ${formatInstant(line.erasedMs)}`
  return [
    ...first,
    keyOrErased,
    showAmounts(line.amounts),
    transaction,
    whenSent(line),
    ...line.hands.map(showOperatorStep),
  ]
}

function whenSent({ sentMs, transactionId, state, hands, mayHaveArrived }: AuditedRecord): string {
  if (sentMs !== null) return `sent ${formatInstant(sentMs)}${mayHaveArrived ? ', may have arrived' : ''}`
  if (transactionId !== null) return 'sent, time unknown'
  const isDoubtful = state === 'uncertain' || hands.some(({ cause }) => cause === 'recovered')
  return isDoubtful ? 'perhaps sent' : 'never sent'
}

const showAmounts = (amounts: Amounts | null): string =>
  Object.entries(amounts ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

const showOperatorStep = (step: AuditStep): string =>
  `${formatInstant(step.atMs)} ${step.who}: ${truncateToOneLine(messageOf(step), 200)}${whyOf(step.reason, messageOf(step))}`

const messageOf = ({ message, cause }: AuditStep): string => message ?? cause.replaceAll('_', ' ')

function showAuditedAct({ who, act, reason, untilMs, records, detail }: AuditedAct): string {
  const facts = actFacts(act, detail)
  const which = whichOf(records, detail)
  return `${who}: ${act}${untilMs === null ? '' : ` until ${formatInstant(untilMs)}`}${facts}${facts && which && ':'}${which}${whyOf(reason, '')}`
}

/** Facts of an act's detail, without personal texts. */
export function actFacts(act: string, detail: AuditedAct['detail']): string {
  const { submissions, file } = detail ?? {}
  if (act === 'download') return ` ${file}`
  if (act !== 'erase' || !Array.isArray(submissions)) return ''
  return ` ${pluralize(submissions.length, 'record')}: ${listFirst(submissions, 0)}`
}

function whichOf(records: AuditedAct['records'], detail: AuditedAct['detail']): string {
  const { unnamed } = detail ?? {}
  const names = records.map(
    ({ outboxId, type, key }) =>
      `outbox:${outboxId} (${type}${key === null ? '' : `, key ${truncateToOneLine(key, 40)}`})`,
  )
  const listed = listFirst(names, typeof unnamed === 'number' ? unnamed : 0)
  return listed && ` ${listed}`
}

const namesShown = 5

function listFirst(names: readonly string[], unnamed: number): string {
  const more = Math.max(0, names.length - namesShown) + unnamed
  return [...names.slice(0, namesShown), ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

const whyOf = (reason: string | null, message: string) =>
  reason === null || message.includes(reason) ? '' : ` (${truncateToOneLine(reason, 200)})`
