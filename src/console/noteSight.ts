import type { Clock } from '../clock.ts'
import type { Sight } from '../ledger/operator/operator.ts'
import { pluralize } from '../plainText.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import type { Viewer } from './guard/viewer.ts'
import type { ConsoleParts } from './parts.ts'

type Noting = Pick<ConsoleParts, 'store' | 'say'>
type Who = Pick<Viewer, 'who' | 'canChange'>

/** An act in the log names at most this many records; it counts the others. */
const namedMax = 100

/**
 * Logs that somebody sees values that pages mask, before they do: in the ledger, as an act of theirs. With --read-only it is a line
 * of the console's own log, because such a console, and the role it has, writes nothing to the ledger.
 *
 * @throws Error when it cannot be logged: nothing may be shown then
 */
export async function noteSight({ store, say }: Noting, { who, canChange }: Who, sight: Sight): Promise<void> {
  if (canChange) await (await store()).actingAs({ who, reason: null }).noteSight(sight)
  else say(`${who} ${sightWords(sight)}`)
}

/** Logs a download of values. @param records null: of every record */
export function noteDownload(
  parts: Noting,
  viewer: Who,
  records: Sight['records'] | null,
  detail: { file: string } & Sight['detail'],
): Promise<void> {
  const named = (records ?? []).slice(0, namedMax)
  const unnamed = records === null ? 'all' : records.length - named.length
  return noteSight(parts, viewer, { act: 'download', records: named, unnamed, detail })
}

/**
 * The store, whose searches by text are logged. What a search finds, and what it does not find, tells a masked value piece by piece:
 * the act names each record that was looked at, or, if these were more than 100, those that were found.
 */
export function withSearchesNoted(store: OperatorStore, parts: Noting, viewer: Who): OperatorStore {
  return {
    ...store,
    async searchText(filter, text, bounds) {
      const search = await store.searchText(filter, text, bounds)
      const { ids, lookedAt } = search
      const isFew = lookedAt <= namedMax
      const records = await store.select(isFew ? filter : { ...filter, among: ids }, namedMax)
      const unnamed = isFew ? 0 : ids.length - records.length
      await noteSight(parts, viewer, { act: 'search', records, unnamed, detail: { lookedAt, found: ids.length } })
      return search
    },
  }
}

/** What is said to somebody before they see values. Pure. */
export const maskedWords = ({ canChange }: Pick<Viewer, 'canChange'>): string =>
  `Values are masked: they may be a person’s. ${
    canChange
      ? 'Who asks for them is logged, in the audit.'
      : 'Who asks for them stands in this console’s own log; nothing is written to the ledger.'
  }`

function sightWords({ act, records, unnamed, detail = {} }: Sight): string {
  const names = records.map(({ id, outboxId }) => (id.startsWith('outbox:') ? id : `${id} (outbox:${outboxId})`))
  const more = unnamed === 0 ? '' : unnamed === 'all' ? 'all records' : `and ${unnamed} more`
  const which = [...names, ...(more === '' ? [] : [more])].join(', ')
  switch (act) {
    case 'show':
      return `asked for the values of ${which}`
    case 'search':
      return `searched the values of ${pluralize(Number(detail.lookedAt), 'record')} and found ${detail.found}: ${which}`
    case 'download':
      return `downloaded ${detail.file} (${which})`
    default:
      return act satisfies never
  }
}

/** Who has asked for the values of which records, for a while; and what was done to them a moment ago. */
export interface ShownRecords {
  show(session: string, id: string): void
  hide(session: string, id: string): void
  isShown(session: string, id: string): boolean
  /** Keeps a message for the page of a record, for the one who did it. */
  tell(session: string, id: string, message: string): void
  /** The message, once. */
  told(session: string, id: string): string | null
}

const forMs = 15 * 60_000
const keptMax = 2_000

export function keepShownRecords({ nowMs }: Pick<Clock, 'nowMs'>): ShownRecords {
  const shown = new Map<string, number>()
  const messages = new Map<string, string>()
  const key = (session: string, id: string) => `${session} ${id}`
  return {
    show: (session, id) => put(shown, key(session, id), nowMs() + forMs),
    hide: (session, id) => void shown.delete(key(session, id)),
    isShown: (session, id) => (shown.get(key(session, id)) ?? 0) > nowMs(),
    tell: (session, id, message) => put(messages, key(session, id), message),
    told(session, id) {
      const message = messages.get(key(session, id)) ?? null
      messages.delete(key(session, id))
      return message
    },
  }
}

/** The oldest goes where there is no room. */
function put<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > keptMax && oldest !== undefined) map.delete(oldest)
}
