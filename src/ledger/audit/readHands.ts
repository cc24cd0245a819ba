import { type Database, epochMs, isoTime } from '../../postgres/database.ts'
import { hasKey } from '../operator/selectSubmissions.ts'
import { type ActFilter, type ActRecord, actFilterValues, namedRecordsSql, recordValues } from './readActs.ts'

/** Which of the things that persons did; null asks for any. */
export interface HandsFilter extends ActFilter {
  sinceMs: number | null
  untilMs: number | null
  /** Part of a name; upper and lower case count as the same. */
  who: string | null
}

/** Something that a person did. Times in epoch milliseconds. */
export interface Hand {
  atMs: number
  who: string
  /** What was done: the cause of a step, or an act as it is said after `outboxd`. */
  what: string
  reason: string | null
  account: string | null
  /** Of a pause: when it ends by itself. */
  untilMs: number | null
  /** The records that it was done to, or whose values it saw. */
  records: ActRecord[]
  /** How many more it saw: a number, or `all`; null: none. */
  unnamed: string | null
}

/** How far down both logs have been shown. */
export interface HandsPosition {
  event: string
  act: string
}

/** What persons did, newest first. @param before where the page begins; null: with the newest @returns `next`: null where no more is */
export async function readHands(
  db: Database,
  filter: HandsFilter,
  before: HandsPosition | null,
  limit: number,
): Promise<{ hands: Hand[]; next: HandsPosition | null }> {
  const position = before ?? { event: last, act: last }
  const events = await readEvents(db, filter, position.event, limit + 1)
  const acts = await readActs(db, filter, position.act, limit + 1)
  const hands: Hand[] = []
  while (hands.length < limit && events.length + acts.length > 0) {
    const isEvent = (events[0]?.atMs ?? -Infinity) >= (acts[0]?.atMs ?? -Infinity)
    const row = (isEvent ? events : acts).shift()
    if (row === undefined) break
    const { logId, ...hand } = row
    position[isEvent ? 'event' : 'act'] = logId
    hands.push(hand)
  }
  return { hands, next: events.length + acts.length > 0 ? { ...position } : null }
}

const last = '9223372036854775807'

type Row = Hand & { logId: string }

const isWanted = (table: string) => `${table}.at >= coalesce($2::timestamptz, '-infinity')
  and ${table}.at < coalesce($3::timestamptz, 'infinity') and strpos(lower(${table}.who), lower(coalesce($4, ''))) > 0`

async function readEvents(db: Database, filter: HandsFilter, before: string, limit: number): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `select e.id as "logId", ${epochMs('e.at')} as "atMs", e.who, e.cause as what, e.detail ->> 'reason' as reason,
       e.detail ->> 'account' as account, null as "untilMs",
       json_build_array(json_build_object('id', s.id, 'outboxId', s.outbox_id, 'type', s.type, 'key', s.key)) as records, null as unnamed
     from outboxd.submission_event e join outboxd.submission s on s.id = e.submission_id
     where e.who like 'operator%' and e.id < $1 and ${isWanted('e')} and ($5::text is null or ${hasKey('$5')})
       and (num_nulls($6::uuid, $7::text) = 2 or s.id = $6 or s.outbox_id = $7)
     order by e.id desc limit $8`,
    [before, ...valuesOf(filter), filter.key, ...recordValues(filter.record), limit],
  )
  return rows
}

async function readActs(db: Database, filter: HandsFilter, before: string, limit: number): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `select a.id as "logId", ${epochMs('a.at')} as "atMs", a.who, a.act as what, a.reason, a.account, ${epochMs('a.until')} as "untilMs",
       named.records, a.detail ->> 'unnamed' as unnamed
     from outboxd.operator_act a ${namedRecordsSql(5)}
     where a.id < $1 and ${isWanted('a')} and named.fits order by a.id desc limit $8`,
    [before, ...valuesOf(filter), ...actFilterValues(filter), limit],
  )
  return rows
}

const valuesOf = ({ sinceMs, untilMs, who }: HandsFilter) => [isoTime(sinceMs), isoTime(untilMs), who]
