import { type Database, epochMs, isoTime } from '../../postgres/database.ts'
import { hasKey } from '../operator/selectSubmissions.ts'

/** A submission as an act or a filter names it: by its own id, or as `outbox:N` by its row, which may not have been captured yet. */
export type RecordName = { id: string } | { outboxId: string }

/** A record that an act was about. Its key is read from the ledger, so that it goes when a person's data is erased. */
export interface ActRecord {
  /** The submission's id, or `outbox:N` if the row had not been captured. */
  id: string
  outboxId: string
  type: string
  key: string | null
}

/** What a person did that is no step of one record. Times in epoch milliseconds. */
export interface AuditedAct {
  kind: 'act'
  atMs: number
  /** As it is said after `outboxd`. */
  act: string
  who: string
  reason: string | null
  account: string | null
  /** Of a pause: when it ends by itself. */
  untilMs: number | null
  detail: Record<string, unknown> | null
  /** The records whose values were shown, searched or downloaded, as far as the act names them. */
  records: ActRecord[]
}

/** Which acts: those of a key's records, or of one record; null asks for any. */
export interface ActFilter {
  key: string | null
  record: RecordName | null
}

/**
 * Joins the records that the act `a` names, as the columns `named.records` and `named.fits`: whether one of them is asked for. An act
 * that saw more records than it names may have seen any record, so it fits, too.
 *
 * @param first the number of the first of three placeholders, whose values are `actFilterValues`
 */
export const namedRecordsSql = (first: number): string => `cross join lateral (
  select coalesce(json_agg(json_build_object('id', coalesce(s.id::text, r.id), 'outboxId', r."outboxId", 'type', r.type, 'key', s.key)
      order by r.place), '[]') as records,
    num_nonnulls($${first}::text, $${first + 1}::uuid, $${first + 2}::text) = 0 or coalesce(a.detail ? 'unnamed', false)
      or coalesce(bool_or(${hasKey(`$${first}`)} or s.id = $${first + 1} or r."outboxId" = $${first + 2}), false) as fits
  from (select place, each ->> 'submission' as id, each ->> 'outboxId' as "outboxId", each ->> 'type' as type
    from jsonb_array_elements(case when a.detail ? 'records' then a.detail -> 'records'
      when a.detail ? 'submission' then jsonb_build_array(a.detail) else '[]' end) with ordinality as named(each, place)) r
  left join lateral (
    select s.id, s.key from outboxd.submission s where s.id = case when r.id not like 'outbox:%' then r.id::uuid end
    union all
    (select s.id, s.key from outboxd.submission s where r.id like 'outbox:%' and s.outbox_id = r."outboxId" order by s.seq desc limit 1)
  ) s on true
) named`

/** The values of the three placeholders of `namedRecordsSql`. */
export const actFilterValues = ({ key, record }: ActFilter): (string | null)[] => [key, ...recordValues(record)]

/** A record's name as two values: the submission's id, and the outbox id. */
export const recordValues = (record: RecordName | null): [id: string | null, outboxId: string | null] => [
  record !== null && 'id' in record ? record.id : null,
  record !== null && 'outboxId' in record ? record.outboxId : null,
]

const pageRows = 500

/** The acts of a span, oldest first. */
export async function* readActs(
  db: Database,
  { sinceMs, untilMs, ...filter }: { sinceMs: number | null; untilMs: number | null } & ActFilter,
): AsyncGenerator<AuditedAct> {
  let after = '0'
  for (;;) {
    const { rows } = await db.query<AuditedAct & { id: string; fits: boolean }>(
      `select 'act' as kind, a.id, ${epochMs('a.at')} as "atMs", a.act, a.who, a.reason, a.account, ${epochMs('a.until')} as "untilMs",
         a.detail, named.records, named.fits
       from (select * from outboxd.operator_act
         where id > $1 and at >= coalesce($2::timestamptz, '-infinity') and at < coalesce($3::timestamptz, 'infinity')
         order by id limit ${pageRows}) a ${namedRecordsSql(4)}
       order by a.id`,
      [after, isoTime(sinceMs), isoTime(untilMs), ...actFilterValues(filter)],
    )
    for (const { id, fits, ...act } of rows) {
      after = id
      if (fits) yield act
    }
    if (rows.length < pageRows) return
  }
}
