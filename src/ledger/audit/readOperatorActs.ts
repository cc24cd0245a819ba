import { type Database, epochMsSql, isoTime } from '../../postgres/database.ts'
import { hasKeySql } from '../operator/selectSubmissions.ts'

/** The row may not have been captured yet. */
export type RecordName = { id: string } | { outboxId: string }

/** The key comes from the ledger, so that an erasure removes it. */
export interface ActRecord {
  /** The submission's id, or `outbox:N` if the row was not captured. */
  id: string
  outboxId: string
  type: string
  key: string | null
}

/** An operator's act that is not a step of one record. */
export interface AuditedAct {
  kind: 'act'
  atMs: number
  /** The command, without `outboxd`. */
  act: string
  who: string
  reason: string | null
  account: string | null
  /** The time when a pause ends by itself. */
  untilMs: number | null
  detail: Record<string, unknown> | null
  /** Records whose values were shown, searched or downloaded. */
  records: ActRecord[]
}

export interface ActFilter {
  key: string | null
  record: RecordName | null
}

/**
 * Joins the records that act `a` names as `named.records`, and `named.fits` if one of them is wanted. An act that saw
 * more records than it names always fits.
 */
export const joinRecordsOfActSql = (first: number): string => `cross join lateral (
  select coalesce(json_agg(json_build_object('id', coalesce(s.id::text, r.id), 'outboxId', r."outboxId", 'type', r.type, 'key', s.key)
      order by r.place), '[]') as records,
    num_nonnulls($${first}::text, $${first + 1}::uuid, $${first + 2}::text) = 0 or coalesce(a.detail ? 'unnamed', false)
      or coalesce(bool_or(${hasKeySql(`$${first}`)} or s.id = $${first + 1} or r."outboxId" = $${first + 2}), false) as fits
  from (select place, each ->> 'submission' as id, each ->> 'outboxId' as "outboxId", each ->> 'type' as type
    from jsonb_array_elements(case when a.detail ? 'records' then a.detail -> 'records'
      when a.detail ? 'submission' then jsonb_build_array(a.detail) else '[]' end) with ordinality as named(each, place)) r
  left join lateral (
    select s.id, s.key from outboxd.submission s where s.id = case when r.id not like 'outbox:%' then r.id::uuid end
    union all
    (select s.id, s.key from outboxd.submission s where r.id like 'outbox:%' and s.outbox_id = r."outboxId" order by s.seq desc limit 1)
  ) s on true
) named`

export const actFilterParameters = ({ key, record }: ActFilter): (string | null)[] => [
  key,
  ...recordNameParameters(record),
]

export const recordNameParameters = (record: RecordName | null): [id: string | null, outboxId: string | null] => [
  record !== null && 'id' in record ? record.id : null,
  record !== null && 'outboxId' in record ? record.outboxId : null,
]

const pageRows = 500

export async function* readOperatorActs(
  db: Database,
  { sinceMs, untilMs, ...filter }: { sinceMs: number | null; untilMs: number | null } & ActFilter,
): AsyncGenerator<AuditedAct> {
  let after = '0'
  for (;;) {
    const { rows } = await db.query<AuditedAct & { id: string; fits: boolean }>(
      `select 'act' as kind, a.id, ${epochMsSql('a.at')} as "atMs", a.act, a.who, a.reason, a.account, ${epochMsSql('a.until')} as "untilMs",
         a.detail, named.records, named.fits
       from (select * from outboxd.operator_act
         where id > $1 and at >= coalesce($2::timestamptz, '-infinity') and at < coalesce($3::timestamptz, 'infinity')
         order by id limit ${pageRows}) a ${joinRecordsOfActSql(4)}
       order by a.id`,
      [after, isoTime(sinceMs), isoTime(untilMs), ...actFilterParameters(filter)],
    )
    for (const { id, fits, ...act } of rows) {
      after = id
      if (fits) yield act
    }
    if (rows.length < pageRows) return
  }
}

export interface OperatorLogFilter extends ActFilter {
  sinceMs: number | null
  untilMs: number | null
  /** Part of a name, in any case. */
  who: string | null
}

export interface OperatorLogEntry {
  atMs: number
  who: string
  /** The cause of a step, or the command of an act. */
  what: string
  reason: string | null
  account: string | null
  /** The time when a pause ends by itself. */
  untilMs: number | null
  /** Records that it changed, or whose values it showed. */
  records: ActRecord[]
  /** Number of further records that it showed, or `all`. */
  unnamed: string | null
}

export interface OperatorLogPosition {
  event: string
  act: string
}

/**
 * Newest first.
 * @param before null for the newest
 * @returns `next` is null at the end
 */
export async function readOperatorLog(
  db: Database,
  filter: OperatorLogFilter,
  before: OperatorLogPosition | null,
  limit: number,
): Promise<{ hands: OperatorLogEntry[]; next: OperatorLogPosition | null }> {
  const position = before ?? { event: last, act: last }
  const events = await readEventRows(db, filter, position.event, limit + 1)
  const acts = await readActRows(db, filter, position.act, limit + 1)
  const hands: OperatorLogEntry[] = []
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

type Row = OperatorLogEntry & { logId: string }

const isWanted = (table: string) => `${table}.at >= coalesce($2::timestamptz, '-infinity')
  and ${table}.at < coalesce($3::timestamptz, 'infinity') and strpos(lower(${table}.who), lower(coalesce($4, ''))) > 0`

async function readEventRows(db: Database, filter: OperatorLogFilter, before: string, limit: number): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `select e.id as "logId", ${epochMsSql('e.at')} as "atMs", e.who, e.cause as what, e.detail ->> 'reason' as reason,
       e.detail ->> 'account' as account, null as "untilMs",
       json_build_array(json_build_object('id', s.id, 'outboxId', s.outbox_id, 'type', s.type, 'key', s.key)) as records, null as unnamed
     from outboxd.submission_event e join outboxd.submission s on s.id = e.submission_id
     where e.who like 'operator%' and e.id < $1 and ${isWanted('e')} and ($5::text is null or ${hasKeySql('$5')})
       and (num_nulls($6::uuid, $7::text) = 2 or s.id = $6 or s.outbox_id = $7)
     order by e.id desc limit $8`,
    [before, ...valuesOf(filter), filter.key, ...recordNameParameters(filter.record), limit],
  )
  return rows
}

async function readActRows(db: Database, filter: OperatorLogFilter, before: string, limit: number): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `select a.id as "logId", ${epochMsSql('a.at')} as "atMs", a.who, a.act as what, a.reason, a.account, ${epochMsSql('a.until')} as "untilMs",
       named.records, a.detail ->> 'unnamed' as unnamed
     from outboxd.operator_act a ${joinRecordsOfActSql(5)}
     where a.id < $1 and ${isWanted('a')} and named.fits order by a.id desc limit $8`,
    [before, ...valuesOf(filter), ...actFilterParameters(filter), limit],
  )
  return rows
}

const valuesOf = ({ sinceMs, untilMs, who }: OperatorLogFilter) => [isoTime(sinceMs), isoTime(untilMs), who]
