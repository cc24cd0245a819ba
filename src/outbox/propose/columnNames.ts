import { normalizeName, splitNameIntoWords, usualNames } from '../../mapping/usualNames.ts'
import type { CatalogColumn } from './catalogTable.ts'

/** Column names of known outboxes, the likeliest first, in the form of `normalizeName`. */
export const columnNames = {
  payload: [
    'payload',
    'body',
    'messagebody',
    'eventdata',
    'messagedata',
    'data',
    'message',
    'content',
    'event',
    'document',
    'json',
  ],
  type: [
    'messagetype',
    'eventtype',
    'aggregatetype',
    'recordtype',
    'documenttype',
    'objecttype',
    'entitytype',
    'type',
    'destination',
    'topic',
    'kind',
  ],
  key: [
    ...[
      'key',
      'orderingkey',
      'partitionkey',
      'messagekey',
      'segment',
      'aggregateid',
      'messagepartition',
      'conversationid',
    ],
    ...usualNames.customer,
  ],
  createdAt: usualNames.createdAt,
  transactionId: [
    'transactionid',
    'servicetransactionid',
    'externaltransactionid',
    'synctransactionid',
    'externalid',
    'remoteid',
  ],
  updatedAt: ['updatedat', 'modifiedat', 'changedat'],
} as const

/** A text column counts as the payload only under one of these names, a json column under any of `columnNames.payload`. */
export const textPayloadNames: readonly string[] = columnNames.payload.slice(0, 5)

export function findColumnByName(
  columns: readonly CatalogColumn[],
  wanted: readonly string[],
  willDo: (column: CatalogColumn) => boolean,
): CatalogColumn | null {
  for (const name of wanted) {
    const found = columns.find((column) => normalizeName(column.name) === name && willDo(column))
    if (found !== undefined) return found
  }
  return null
}

/** Words about data. In a business table `delivered` and `sent` are about goods. */
const transfer = 'synced|synchronized|synchronised|sync|exported|transferred|transmitted|uploaded|replicated|pushed'
const handling = `${transfer}|processed|published|sent|delivered|dispatched|forwarded|relayed|consumed|handled|done|completed|finished|submitted`

/** True for names such as `synced_at` and `is_published`. */
export function isDoneName(name: string, isOutbox: boolean, as: 'time' | 'flag'): boolean {
  const words = isOutbox ? handling : transfer
  const form =
    as === 'time' ? `(?:${words})(?:at|on|time|date|ts|utc)` : `(?:is|has|was|been|already)*(?:${words})(?:flag)?`
  return new RegExp(`${as === 'time' ? '' : '^'}${form}$`).test(normalizeName(name))
}

const german =
  'gesendet|versendet|versandt|übertragen|uebertragen|exportiert|übermittelt|uebermittelt|verarbeitet|erledigt|abgeholt|synchronisiert|veröffentlicht|veroeffentlicht|gemeldet'
const wide = `${handling}|export|transfer|upload|sync|push|publish|dispatch|send|emitted|extracted|fetched|notified|acknowledged|${german}`
const done = new RegExp(`^(?:${wide})$`)
const doneWithin = new RegExp(
  `^(?:is|has|was|been|already|last|date|time|flag)*(?:${wide})(?:at|on|am|um|time|date|datum|zeit|ts|utc|flag|yn|kz)?$`,
)
/** Words in names of columns about a person, a count, a way, a target or a plan. */
const otherwise =
  /^(by|von|id|no|nr|number|count|counter|qty|quantity|menge|amount|betrag|name|method|type|reason|note|address|attempts|retries|tries|total|error|message|planned|expected|scheduled|due|requested|promised|estimated|until)$/

/** True for names that may be about sending data or goods, such as `exported` and `gesendetAm`. Only the user knows. */
export function isNameAboutSending(name: string): boolean {
  const words = splitNameIntoWords(name)
  return (
    !words.some((word) => otherwise.test(word)) &&
    (words.some((word) => done.test(word)) || doneWithin.test(normalizeName(name)))
  )
}

/** True for `status` in an outbox; in a business table only for a name about data, such as `sync_status`. */
export function isStatusColumnName(name: string, isOutbox: boolean): boolean {
  const about = 'sync|export|transfer|outbox|interface|upload|replication'
  const own = isOutbox
    ? `(?:${about}|message|event|processing|process|delivery|send|publish|dispatch|record)?`
    : `(?:${about})`
  return new RegExp(`^${own}(?:status|state)$`).test(normalizeName(name))
}

export const isStatusLikeName = (name: string): boolean =>
  /(status|state|statecode|statuscode|zustand)$/.test(normalizeName(name))

/** True for a column of error texts; in a business table only if its name is about data. */
export function isErrorColumnName(name: string, isOutbox: boolean, what: 'code' | 'text'): boolean {
  const about = 'sync|export|transfer|outbox|interface|upload'
  const own = isOutbox ? `(?:${about}|last|send|processing|delivery|service)?` : `(?:${about})(?:last)?`
  const form = what === 'code' ? '(?:error|failure)code' : '(?:error|failure)(?:message|text|reason|detail|details)?'
  return new RegExp(`^${own}${form}$`).test(normalizeName(name))
}

export const isGivenUpName = (name: string): boolean =>
  /^(abandoned|failed|errored|rejected|dead|deadlettered|givenup|dismissed)(at|on|time)$/.test(normalizeName(name))

/** Words that outboxes use for the states of a row, in the form of `normalizeName`. */
export const statusValues = {
  new: [
    'new',
    'pending',
    'ready',
    'open',
    'waiting',
    'unsent',
    'unprocessed',
    'created',
    'todo',
    'initial',
    'notsent',
    'neu',
    'offen',
  ],
  queued: [
    'queued',
    'taken',
    'claimed',
    'processing',
    'inprogress',
    'inprocess',
    'sending',
    'busy',
    'running',
    'inflight',
    'started',
  ],
  completed: [
    'completed',
    'complete',
    'done',
    'sent',
    'processed',
    'published',
    'delivered',
    'success',
    'succeeded',
    'synced',
    'finished',
    'ok',
  ],
  failed: ['failed', 'failure', 'error', 'errored', 'dead'],
  rejected: ['rejected', 'invalid', 'refused'],
  uncertain: ['uncertain', 'unclear', 'unknown'],
} as const

export function findMatchingValue(values: readonly string[], words: readonly string[]): string | null {
  for (const word of words) {
    const found = values.find((value) => normalizeName(value) === word)
    if (found !== undefined) return found
  }
  return null
}
