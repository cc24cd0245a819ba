import { checkRow, createCaseCollector, findRepeatedEffects, isLost, type Violation } from './checker.ts'
import type { Arrival, DocumentRow, DocumentVersion, History } from './history.ts'

/**
 * Checks what became of documents of which each version is sent. Each transaction of the ERP makes one outbox row and one
 * version; a row sends the current version when it is read, unless a later one takes its place. So each version arrives at most once, in order and with its total, versions that
 * must not be sent do not arrive, and the last version arrives unless its record is uncertain or an operator discarded
 * it. Pure.
 */
export function findDocumentViolations(history: History): Violation[] {
  const { versions, rows } = history.documents
  const rowsOf = Map.groupBy(rows, ({ document }) => document)
  const posts = Map.groupBy(history.arrivals, ({ marker }) => marker)
  const caseOf = createCaseCollector(history)
  return [...Map.groupBy(versions, ({ document }) => document)].flatMap(([document, its]) => {
    const mine = rowsOf.get(document) ?? []
    const markers = new Set(its.flatMap(({ marker }) => marker ?? []))
    const arrivals = [...markers].flatMap((marker) => posts.get(marker) ?? []).sort((a, b) => a.arrivedUs - b.arrivedUs)
    const rowProblems = mine.flatMap((row) => {
      const effects = arrivals.filter(({ effectId }) => effectId !== null && effectId === row.transactionId)
      const checked = caseOf(row, sentContent, effects)
      return checkRow(checked).map((what) => ({ what: `row ${row.outboxId}: ${what}`, case: checked }))
    })
    const ofDocument = checkDocument(history, its, mine, arrivals).map((what) => ({ what, case: null }))
    return [...rowProblems, ...ofDocument].map((each) => ({
      what: `sale ${document}: ${each.what}`,
      case: each.case,
      document: describe(its, mine, arrivals),
    }))
  })
}

/** A row that names a document does not say which outcome it must have. */
const sentContent = { marker: '', outcome: 'completed', amount: null } as const

function checkDocument(
  { lost = [] }: History,
  versions: readonly DocumentVersion[],
  rows: readonly DocumentRow[],
  arrivals: readonly Arrival[],
): string[] {
  const wrong: string[] = []
  if (rows.length !== versions.length)
    return [`${versions.length} transactions wrote it, and ${rows.length} rows name it`]
  const first = (marker: string) => versions.findIndex((each) => each.marker === marker)
  const last = (marker: string) => versions.findLastIndex((each) => each.marker === marker)
  for (const [marker, posts] of Map.groupBy(arrivals, (each) => each.marker)) {
    const its = versions.filter((each) => each.marker === marker)
    if (!its.some(({ isSent }) => isSent)) wrong.push(`${marker} was sent although it does not meet the condition`)
    for (const { amount } of posts)
      if (amount !== its[0]?.total) wrong.push(`${marker}: ${its[0]?.total} arrived as ${amount}`)
    // If the ledger lost a version, an update without a change may send the version again
    // (docs/start/change-capture.md).
    const effects = posts.filter((each) => each.effectId !== null && !isLost(each, lost))
    wrong.push(...findRepeatedEffects(effects).map((what) => `${marker}: ${what}`))
  }
  const firsts = [
    ...Map.groupBy(
      arrivals.filter((each) => !isLost(each, lost)),
      (each) => each.marker,
    ).keys(),
  ]
  firsts.slice(1).forEach((marker, i) => {
    if (first(marker) < first(firsts[i] ?? '')) wrong.push(`${marker} arrived after ${firsts[i]}, which is newer`)
  })
  const arrivalOf = ({ transactionId }: DocumentRow) =>
    arrivals.find(({ effectId }) => effectId !== null && effectId === transactionId)
  rows.forEach((row, at) => {
    const sent = arrivalOf(row)
    if (row.status === 'completed' && sent && last(sent.marker) < at)
      wrong.push(`row ${row.outboxId} of version ${at + 1} sent ${sent.marker}, which is older`)
    // A row reads its own version or a later one.
    const holder = findHolder(row, rows)
    const held = holder && arrivalOf(holder)
    if (held && last(held.marker) < at)
      wrong.push(`row ${row.outboxId} of version ${at + 1} ended as unchanged since ${held.marker}, which is older`)
  })
  return [...wrong, ...checkLast(versions, rows, arrivals)]
}

/** Returns the row since which a row ended as unchanged. */
function findHolder({ error }: DocumentRow, rows: readonly DocumentRow[]): DocumentRow | undefined {
  const since = /^unchanged since outbox:(\d+)/.exec(error ?? '')?.[1]
  return rows.find(({ outboxId }) => outboxId === since)
}

const endedAtCapture = /unchanged since |was deleted|does not meet the condition/

/**
 * Checks that the last version arrived or its record did not complete; if it must not be sent, that it was discarded.
 */
function checkLast(
  versions: readonly DocumentVersion[],
  rows: readonly DocumentRow[],
  arrivals: readonly Arrival[],
): string[] {
  const newest = versions.at(-1)
  const row = rows.at(-1)
  if (!newest || !row) return []
  if (!newest.isSent) {
    // `recover` rejects a row that the ledger had lost and that cannot be mapped any more.
    const isRecovered = row.status === 'rejected' && /the ledger did not know this row/.test(row.error ?? '')
    // The service has it as it was sent before.
    const isListed = row.status === 'rejected' && /^changed after it was sent /.test(row.error ?? '')
    return row.status === 'discarded' || isRecovered || isListed
      ? []
      : [`the last version is not to be sent, but its row is ${row.status}`]
  }
  if (arrivals.some(({ marker, effectId }) => marker === newest.marker && effectId !== null)) return []
  // The newest row read the version, or found it unchanged since an earlier row.
  const holder = findHolder(row, rows) ?? row
  const isInDoubt =
    holder.status === 'uncertain' ||
    holder.status === 'failed' ||
    (holder.status === 'discarded' && !endedAtCapture.test(holder.error ?? ''))
  return isInDoubt ? [] : [`its last version ${newest.marker} did not arrive`]
}

function describe(
  versions: readonly DocumentVersion[],
  rows: readonly DocumentRow[],
  arrivals: readonly Arrival[],
): string[] {
  return [
    ...versions.map((each, at) => {
      const row = rows[at]
      return `    ${each.marker} ${each.total} ${each.isSent ? '' : 'not to be sent'}; row ${row?.outboxId} ${row?.status} ${row?.transactionId ?? ''} ${row?.error ?? ''}`
    }),
    ...arrivals.map(
      (each) =>
        `    ${new Date(each.arrivedUs / 1000).toISOString()} at the service: ${each.marker} ${each.status ?? 'dropped'} ${each.effectId ?? 'no effect'}`,
    ),
  ]
}
