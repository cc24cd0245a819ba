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

interface OperatorLogFilter {
  sinceMs: number | null
  untilMs: number | null
  /** Part of a name. Ignores case. */
  who: string | null
  key: string | null
  record: RecordName | null
}

/** $1 to $6 of the statements below. */
const parametersOf = ({ sinceMs, untilMs, who, key, record }: OperatorLogFilter): (string | null)[] => [
  formatIsoInstantOrNull(sinceMs),
  formatIsoInstantOrNull(untilMs),
  who,
  key,
  record !== null && 'id' in record ? record.id : null,
  record !== null && 'outboxId' in record ? record.outboxId : null,
]

const isInSpanSql = (log: string) => `${log}.at >= coalesce($1::timestamptz, '-infinity')
  and ${log}.at < coalesce($2::timestamptz, 'infinity') and strpos(lower(${log}.who), lower(coalesce($3, ''))) > 0`

/** Selects acts with the records that each names. An act that concerned more than it names matches any key and record. */
const actsSql = (position: string) => `
  select 'act' as kind, a.id as "logId", ${epochMsSql('a.at')} as "atMs", a.act, a.who, a.reason, a.account, ${epochMsSql('a.until')} as "untilMs",
    a.detail, named.records
  from outboxd.operator_act a cross join lateral (
    select coalesce(json_agg(json_build_object('id', r.submission, 'outboxId', r."outboxId", 'type', r.type, 'key', s.key)
        order by r.place), '[]') as records,
      num_nonnulls($4::text, $5::uuid, $6::text) = 0 or coalesce(a.detail ? 'unnamed', false)
        or coalesce(bool_or(${hasKeySql('$4')} or r.submission = $5 or r."outboxId" = $6), false) as fits
    from rows from (jsonb_to_recordset(a.detail -> 'records') as (submission uuid, "outboxId" text, type text))
        with ordinality r(submission, "outboxId", type, place)
      left join outboxd.submission s on s.id = r.submission
  ) named
  where ${position} and ${isInSpanSql('a')} and named.fits`

const laterActsSql = `${actsSql('a.id > $7')} order by a.id limit $8`

const pageRows = 500

export async function* readOperatorActs(
  db: Database,
  filter: Omit<OperatorLogFilter, 'who'>,
): AsyncGenerator<AuditedAct> {
  const parameters = parametersOf({ ...filter, who: null })
  let after = '0'
  for (;;) {
    const { rows } = await db.query<AuditedAct & { logId: string }>(laterActsSql, [...parameters, after, pageRows])
    for (const { logId, ...act } of rows) {
      after = logId
      yield act
    }
    if (rows.length < pageRows) return
  }
}

/** Of a step, `act` is its message or cause, and `detail` is null. */
export interface OperatorLogEntry extends Omit<AuditedAct, 'kind'> {
  kind: 'act' | 'step'
}

export type OperatorLogPosition = Record<OperatorLogEntry['kind'], string>

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
  const position = before ?? { act: last, step: last }
  const { rows } = await db.query<OperatorLogEntry & { logId: string }>(logSql, [
    ...parametersOf(filter),
    position.act,
    limit + 1,
    position.step,
  ])
  const entries = rows.slice(0, limit).map(({ logId, ...entry }) => {
    position[entry.kind] = logId
    return entry
  })
  return { entries, next: rows.length > limit ? position : null }
}

/** More than any id. */
const last = '999999999999999999'

/** Within a kind the order is that of the ids, by which a page begins, even if the times of two sessions are not in this order. */
const logSql = `
  select * from (
    (${actsSql('a.id < $7')} order by a.id desc limit $8)
    union all
    (select 'step', e.id, ${epochMsSql('e.at')}, coalesce(e.message, e.cause), e.who, e.detail ->> 'reason', e.detail ->> 'account', null,
       null, json_build_array(json_build_object('id', s.id, 'outboxId', s.outbox_id, 'type', s.type, 'key', s.key))
     from outboxd.submission_event e join outboxd.submission s on s.id = e.submission_id
     where e.actor = 'operator' and e.id < $9 and ${isInSpanSql('e')} and ($4::text is null or ${hasKeySql('$4')})
       and (num_nulls($5::uuid, $6::text) = 2 or s.id = $5 or s.outbox_id = $6)
     order by e.id desc limit $8)
  ) log order by max("atMs") over (partition by kind order by "logId") desc, kind, "logId" desc limit $8`
