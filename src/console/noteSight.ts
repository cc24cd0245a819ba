import { pluralize } from '../cli/table.ts'
import type { Sight } from '../ledger/operator/acts.ts'
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
