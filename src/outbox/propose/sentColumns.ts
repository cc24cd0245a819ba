import { isUsualName, normalizeName, splitNameIntoWords } from '../../mapping/usualNames.ts'
import { type CatalogColumn, isIntegerOrNumericColumn, isTextColumn, isTimeColumn } from './catalogTable.ts'

/** Words only about data. In a business table, `delivered` and `sent` may be about goods. */
const transfer = 'synced|synchronized|synchronised|sync|exported|transferred|transmitted|uploaded|replicated|pushed'
const handling = `${transfer}|processed|published|sent|delivered|dispatched|forwarded|relayed|consumed|handled|done|completed|finished|submitted`
const german =
  'gesendet|versendet|versandt|übertragen|uebertragen|exportiert|übermittelt|uebermittelt|verarbeitet|erledigt|abgeholt|synchronisiert|veröffentlicht|veroeffentlicht|gemeldet'
const sending = `${handling}|export|transfer|upload|push|publish|dispatch|send|emitted|extracted|fetched|notified|acknowledged|${german}`

const sendingForm = new RegExp(
  `^(?:is|has|was|been|already|last|date|time|flag)*(?:${sending})(?:at|on|am|um|time|date|datum|zeit|ts|utc|flag|yn|kz)?$`,
)
const sendingWord = new RegExp(`^(?:${sending})$`)

/** Words that make a column about who sent, how often, how, where to or when to: not about whether a row was sent. */
const otherwise =
  /^(by|von|id|no|nr|number|count|counter|qty|quantity|menge|amount|betrag|name|method|type|reason|note|address|attempts|retries|tries|total|error|message|planned|expected|scheduled|due|requested|promised|estimated|until)$/

/**
 * True for names that may be about sending data or goods, such as `exported` and `gesendetAm`. Only the user knows
 * which.
 */
export function isNameAboutSending(name: string): boolean {
  const words = splitNameIntoWords(name)
  return (
    !words.some((word) => otherwise.test(word)) &&
    (words.some((word) => sendingWord.test(word)) || sendingForm.test(normalizeName(name)))
  )
}

/** True for a time or flag such as `synced_at` or `is_published`. In a business table, only words about data count. */
export function isSentMarkColumn(column: CatalogColumn, isOutbox: boolean): boolean {
  const words = isOutbox ? handling : transfer
  const name = normalizeName(column.name)
  if (isTimeColumn(column)) return !column.notNull && new RegExp(`(?:${words})(?:at|on|time|date|ts|utc)$`).test(name)
  const isFlag = column.type === 'boolean' || isIntegerOrNumericColumn(column)
  return isFlag && new RegExp(`^(?:is|has|was|been|already)*(?:${words})(?:flag)?$`).test(name)
}

const aboutData = 'sync|export|transfer|outbox|interface|upload|replication'
const outboxStatus = new RegExp(
  `^(?:${aboutData}|message|event|processing|process|delivery|send|publish|dispatch|record)?(?:status|state)$`,
)
const dataStatus = new RegExp(`^(?:${aboutData})(?:status|state)$`)

/** Finds `status` in an outbox, and in a business table only a status of data, such as `sync_status`. */
export const findSendingStatusColumn = (columns: readonly CatalogColumn[], isOutbox: boolean): CatalogColumn | null =>
  columns.find(
    (each) =>
      (isOutbox ? outboxStatus : dataStatus).test(normalizeName(each.name)) && (isTextColumn(each) || each.isClosed),
  ) ?? null

export const isStatusName = (name: string) => /(status|state|statecode|statuscode|zustand)$/.test(normalizeName(name))

/** Finds the column of the ERP's own workflow (draft, confirmed), which outboxd reads and never writes. */
export function findDocumentStatusColumn(columns: readonly CatalogColumn[]): CatalogColumn | null {
  const all = columns.filter(
    (each) => isStatusName(each.name) && (isTextColumn(each) || each.isClosed || isIntegerOrNumericColumn(each)),
  )
  const isOfDocument = ({ name }: CatalogColumn) =>
    /^(doc|order|beleg|auftrags)?(status|state|statecode)$/.test(normalizeName(name))
  return all.find(isOfDocument) ?? all[0] ?? null
}

/** Values that outboxes use for the states of a row, as `normalizeName` writes them, the likeliest first. */
const statusWords = {
  new: 'new pending ready open waiting unsent unprocessed created todo initial notsent neu offen'.split(' '),
  queued: 'queued taken claimed processing inprogress inprocess sending busy running inflight started'.split(' '),
  completed: 'completed complete done sent processed published delivered success succeeded synced finished ok'.split(
    ' ',
  ),
  failed: 'failed failure error errored dead'.split(' '),
  rejected: 'rejected invalid refused'.split(' '),
  uncertain: 'uncertain unclear unknown'.split(' '),
} as const
const { new: _, ...statusWordsAfterNew } = statusWords
const allStatusWords = Object.values(statusWords).flat()

type StatusWordState = keyof typeof statusWords

export const findStatusValue = (words: readonly string[], state: StatusWordState): string | null =>
  statusWords[state].flatMap((known) => words.filter((word) => normalizeName(word) === known))[0] ?? null

/** Finds values about the business, such as draft and released. */
export const findValuesNotAboutSending = (words: readonly string[]): string[] =>
  words.filter((word) => !allStatusWords.includes(normalizeName(word)))

export function chooseExampleValue(words: readonly string[]): string {
  const ended = Object.values(statusWordsAfterNew).flat()
  return words.findLast((word) => !ended.includes(normalizeName(word))) ?? '…'
}

export function knownValuesDefaultFirst({ knownValues, default: fallback }: CatalogColumn): string[] {
  const first = /^'((?:[^']|'')*)'/.exec(fallback ?? '')?.[1]?.replaceAll("''", "'")
  return [...new Set([...(first === undefined ? [] : [first]), ...(knownValues ?? [])])]
}

/** Finds columns whose name or values may say whether a row was sent. Only the user knows which do. */
export const findSentColumnCandidates = (columns: readonly CatalogColumn[]): CatalogColumn[] =>
  columns.filter((column) => {
    const { name, type, notNull, isClosed } = column
    if (isTimeColumn(column)) return !notNull && isNameAboutSending(name)
    if (type === 'boolean') return isNameAboutSending(name)
    if (isIntegerOrNumericColumn(column)) return isNameAboutSending(name) || isStatusName(name)
    return (isTextColumn(column) || isClosed) && !hasOtherUse(name) && mayTellOfSending(column)
  })

const hasOtherUse = (name: string) =>
  (['type', 'key', 'customer', 'payload'] as const).some((what) => isUsualName(name, what))

function mayTellOfSending(column: CatalogColumn): boolean {
  const { name, knownValues } = column
  if (knownValues === null) return false
  if (findStatusValue(knownValues, 'queued') !== null || findStatusValue(knownValues, 'completed') !== null) return true
  return isStatusName(name)
    ? findValuesNotAboutSending(knownValuesDefaultFirst(column)).length === 0
    : isNameAboutSending(name)
}
