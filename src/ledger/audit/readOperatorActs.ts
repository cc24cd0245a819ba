import { type Database, epochMsSql } from '../../postgres/database.ts'
import { formatIsoInstantOrNull } from '../../time.ts'
import { hasKeySql } from '../operator/selectSubmissions.ts'

/** `outboxId` names a row that may not have been captured yet. */
export type RecordName = { id: string } | { outboxId: string }

/**
 * A record that an operator's act concerns. The act does not store the key, so that `erase` removes the key here, too.
 */
export interface RecordOfAct {
  /** Null if the row was not captured. */
  id: string | null
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
  records: RecordOfAct[]
}

interface ActFilter {
  key: string | null
  record: RecordName | null
}

export interface OperatorLogFilter extends ActFilter {
  sinceMs: number | null
  untilMs: number | null
  /** Part of a name. Ignores case. */
  who: string | null
}

/** Returns $2 to $7 of the statements below. */
const parametersOf = ({ sinceMs, untilMs, who, key, record }: OperatorLogFilter): (string | null)[] => [
  formatIsoInstantOrNull(sinceMs),
  formatIsoInstantOrNull(untilMs),
  who,
  key,
  record !== null && 'id' in record ? record.id : null,
  record !== null && 'outboxId' in record ? record.outboxId : null,
]

const isInSpanSql = (log: string) => `${log}.at >= coalesce($2::timestamptz, '-infinity')
  and ${log}.at < coalesce($3::timestamptz, 'infinity') and strpos(lower(${log}.who), lower(coalesce($4, ''))) > 0`

/**
 * Selects acts after or before id $1, with the records that each names. An act that showed more matches any record, and
 * the key of any earlier one.
 */
const actsSql = (beyond: '>' | '<') => `
  select 'act' as kind, a.id, ${epochMsSql('a.at')} as "atMs", a.act, a.who, a.reason, a.account, ${epochMsSql('a.until')} as "untilMs",
    a.detail, named.records
  from outboxd.operator_act a cross join lateral (
    select coalesce(json_agg(json_build_object('id', coalesce(s.id::text, r.id), 'outboxId', r."outboxId", 'type', r.type, 'key', s.key)
        order by r.place), '[]') as records,
      num_nonnulls($5::text, $6::uuid, $7::text) = 0 or coalesce(a.detail ? 'unnamed', false) and ($5 is null
        or exists (select from outboxd.submission s where ${hasKeySql('$5')} and s.captured_at <= a.at))
        or coalesce(bool_or(${hasKeySql('$5')} or s.id = $6 or r."outboxId" = $7), false) as fits
    from (select place, each ->> 'submission' as id, each ->> 'outboxId' as "outboxId", each ->> 'type' as type
      from jsonb_array_elements(case when a.detail ? 'records' then a.detail -> 'records'
        when a.detail ? 'submission' then jsonb_build_array(a.detail) else '[]' end) with ordinality as named(each, place)) r
    left join lateral (
      select s.id, s.key from outboxd.submission s where s.id = r.id::uuid
      union all
      (select s.id, s.key from outboxd.submission s where r.id is null and s.outbox_id = r."outboxId" order by s.seq desc limit 1)
    ) s on true
  ) named
  where a.id ${beyond} $1 and ${isInSpanSql('a')} and named.fits order by a.id ${beyond === '>' ? 'asc' : 'desc'} limit $8`

const laterActsSql = actsSql('>')
const earlierActsSql = actsSql('<')

const pageRows = 500

export async function* readOperatorActs(
  db: Database,
  filter: Omit<OperatorLogFilter, 'who'>,
): AsyncGenerator<AuditedAct> {
  const parameters = parametersOf({ ...filter, who: null })
  let after = '0'
  for (;;) {
    const { rows } = await db.query<AuditedAct & { id: string }>(laterActsSql, [after, ...parameters, pageRows])
    for (const { id, ...act } of rows) {
      after = id
      yield act
    }
    if (rows.length < pageRows) return
  }
}

export interface OperatorLogEntry {
  atMs: number
  who: string
  /** The message or cause of a step, or the command of an act. */
  what: string
  reason: string | null
  account: string | null
  untilMs: number | null
  /** Records that were changed, or whose values were shown. */
  records: RecordOfAct[]
  /** Null for a step. */
  detail: AuditedAct['detail']
}

export interface OperatorLogPosition {
  event: string
  act: string
}

/**
 * Newest first.
 * @param before null for the first page
 * @returns `next` is null on the last page
 */
export async function readOperatorLog(
  db: Database,
  filter: OperatorLogFilter,
  before: OperatorLogPosition | null,
  limit: number,
): Promise<{ entries: OperatorLogEntry[]; next: OperatorLogPosition | null }> {
  const position = before ?? { event: last, act: last }
  const parameters = parametersOf(filter)
  const events = (await db.query<Row>(earlierEventsSql, [position.event, ...parameters, limit + 1])).rows
  const seen = await db.query<AuditedAct & { id: string }>(earlierActsSql, [position.act, ...parameters, limit + 1])
  const acts = seen.rows.map(({ id: logId, kind: _, act: what, ...act }): Row => ({ ...act, logId, what }))
  const entries: OperatorLogEntry[] = []
  while (entries.length < limit && events.length + acts.length > 0) {
    const isEvent = (events[0]?.atMs ?? -Infinity) >= (acts[0]?.atMs ?? -Infinity)
    const row = (isEvent ? events : acts).shift()
    if (row === undefined) break
    const { logId, ...entry } = row
    position[isEvent ? 'event' : 'act'] = logId
    entries.push(entry)
  }
  return { entries, next: events.length + acts.length > 0 ? { ...position } : null }
}

const last = '9223372036854775807'

type Row = OperatorLogEntry & { logId: string }

const earlierEventsSql = `
  select e.id as "logId", ${epochMsSql('e.at')} as "atMs", e.who, coalesce(e.message, e.cause) as what, e.detail ->> 'reason' as reason,
    e.detail ->> 'account' as account, null as "untilMs",
    json_build_array(json_build_object('id', s.id, 'outboxId', s.outbox_id, 'type', s.type, 'key', s.key)) as records, null as detail
  from outboxd.submission_event e join outboxd.submission s on s.id = e.submission_id
  where e.actor = 'operator' and e.id < $1 and ${isInSpanSql('e')} and ($5::text is null or ${hasKeySql('$5')})
    and (num_nulls($6::uuid, $7::text) = 2 or s.id = $6 or s.outbox_id = $7)
  order by e.id desc limit $8`
