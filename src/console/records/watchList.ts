import { readSteps, type Step } from '../../ledger/operator/readSubmissionDetail.ts'
import type { SubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import { readLastEventId } from '../../ledger/snapshot.ts'
import { readListFilters } from '../../operations/filters.ts'
import type { Database } from '../../postgres/database.ts'
import type { LiveTopic } from '../live/createLive.ts'
import { queryFields, type RecordsQuery, readRecordsQuery } from './recordsQuery.ts'

/** The version of a list until a record has come to it or left it. */
export const asShown = 'as shown'

/** All pages together have five statements a second, and this is the least urgent. */
const watchEveryMs = 3_000

/** A list that is further behind is said to have something newer, unread. */
const behindMax = 1_000n

/** Steps read at once. If there are more, nearly every list has something newer. */
const stepsMax = 2_000

/** Ids are not committed in their order, so each look begins this far back. */
const overlap = 200n

/** The topic of a list: the event after which it was read, and its filters. */
export function listTopic(lastEventId: string, query: RecordsQuery): string {
  return `records:${lastEventId}.${new URLSearchParams(queryFields({ ...query, from: null }))}`
}

/** Steps that records took. */
export interface StepReads {
  readLastEventId(): Promise<string>
  readSteps(afterId: string, most: number): Promise<Step[]>
}

export const stepReads = (ledger: Database): StepReads => ({
  readLastEventId: () => readLastEventId(ledger),
  readSteps: (afterId, most) => readSteps(ledger, afterId, most),
})

/**
 * Watches all lists that are on a page with one statement, which reads the steps that records took since the last look. A list with
 * a cause or a text is watched by its other filters.
 */
export function watchLists(reads: () => Promise<StepReads>, nowMs: () => number): LiveTopic {
  const lists = new Map<string, WatchedList>()
  let readTo = 0n
  return {
    everyMs: watchEveryMs,
    async readVersions(keys) {
      for (const key of lists.keys()) if (!keys.includes(key)) lists.delete(key)
      const begun = keys.filter((key) => !lists.has(key)).map((key) => readKey(key, nowMs()))
      if (begun.length > 0) bound(begun, BigInt(await (await reads()).readLastEventId()))
      const known = [...lists.values()].filter(({ isNewer }) => !isNewer)
      for (const list of begun) lists.set(list.key, list)
      const starts = begun.filter(({ isNewer }) => !isNewer).map(({ since }) => since)
      if (known.length > 0) starts.push(readTo - overlap)
      if (starts.length > 0) {
        const from = starts.reduce(least)
        const steps = await (await reads()).readSteps(String(from), stepsMax)
        const numbered = steps.map((step) => ({ step, id: BigInt(step.id) }))
        readTo = numbered.at(-1)?.id ?? greatest(readTo, from)
        for (const list of [...lists.values()].filter(({ isNewer }) => !isNewer))
          list.isNewer =
            steps.length === stepsMax || numbered.some(({ step, id }) => id > list.since && concerns(list.filter, step))
      }
      return new Map([...lists.values()].map(({ key, isNewer }) => [key, isNewer ? 'newer' : asShown]))
    },
  }
}

/** Bounds the event that an address names: neither an old one nor one of the future is read from. */
function bound(begun: readonly WatchedList[], last: bigint): void {
  for (const list of begun) {
    list.isNewer = list.since < last - behindMax
    if (list.isNewer || list.since > last) list.since = last
  }
}

interface WatchedList {
  key: string
  since: bigint
  filter: SubmissionFilter | null
  isNewer: boolean
}

const least = (one: bigint, other: bigint) => (one < other ? one : other)
const greatest = (one: bigint, other: bigint) => (one > other ? one : other)

function readKey(key: string, nowMs: number): WatchedList {
  const [, since = '0', search = ''] = /^(\d{1,18})\.(.*)$/s.exec(key) ?? []
  const { filters } = readRecordsQuery(Object.fromEntries(new URLSearchParams(search)))
  const read = readListFilters(filters, nowMs)
  return { key, since: BigInt(since), filter: read.kind === 'value' ? read.filter : null, isNewer: false }
}

/** Whether a step has brought a record into a list, or taken it out. Pure. */
export function concerns(filter: SubmissionFilter | null, step: Step): boolean {
  if (filter === null) return false
  const { states, type, key, code, transactionId } = filter
  const isOf = step.from !== null && states.includes(step.from)
  if (!isOf && !states.includes(step.to)) return false
  if (type !== null && step.type !== type) return false
  if (key !== null && step.key !== key) return false
  if (transactionId !== null && step.transactionId !== transactionId) return false
  // A record that has left has a different code by now, or none.
  return isOf || code === null || step.code?.toLowerCase() === code.toLowerCase()
}
