import type { MadeRequest, Outcome } from '../model/service.ts'
import type { Database } from '../postgres/database.ts'

/** Request counts for the service's two targets (docs/reference/interface.md, section 8). */
export interface RequestCounts {
  requests: number
  /** Requests answered with 500 or above, with E003, or not at all. */
  failed: number
  /** Requests except those whose connection failed, because these are neither fast nor slow. */
  answered: number
  slow: number
}

/** Outcomes that count as failed, the same as in deploy/prometheus-rules.yaml. */
const failures: ReadonlySet<Outcome> = new Set(['server_error', 'timeout', 'network', 'unavailable'])

export const slowRequestMs = 2_000

/**
 * Call this last in a transaction, because this instance's next transaction waits for the row that is locked here.
 */
export async function addRequestCounts(
  db: Database,
  instanceId: string,
  requests: readonly MadeRequest[],
): Promise<void> {
  if (requests.length === 0) return
  const kinds = Map.groupBy(requests, ({ kind }) => kind)
  await db.query(
    `insert into outboxd.request_count as c (minute, kind, instance_id, requests, failed, answered, slow)
     select date_trunc('minute', clock_timestamp()), kind, $1, requests, failed, answered, slow
     from json_to_recordset($2) as r(kind text, requests int, failed int, answered int, slow int)
     order by kind
     on conflict (minute, kind, instance_id) do update set requests = c.requests + excluded.requests,
       failed = c.failed + excluded.failed, answered = c.answered + excluded.answered, slow = c.slow + excluded.slow`,
    [instanceId, JSON.stringify([...kinds].map(([kind, made]) => ({ kind, ...countsOf(made) })))],
  )
}

function countsOf(made: readonly MadeRequest[]): RequestCounts {
  const answered = made.filter(({ outcome }) => outcome !== 'network')
  return {
    requests: made.length,
    failed: made.filter(({ outcome }) => failures.has(outcome)).length,
    answered: answered.length,
    slow: answered.filter(({ tookMs }) => tookMs > slowRequestMs).length,
  }
}

export type CountsByKind = Record<MadeRequest['kind'], RequestCounts>

export interface RecentRequestCounts {
  last5Minutes: CountsByKind
  lastHour: CountsByKind
  lastDay: CountsByKind
  last28Days: CountsByKind
}

type Reach = keyof RecentRequestCounts

export async function readRecentRequestCounts(db: Database): Promise<RecentRequestCounts> {
  const { rows } = await db.query<RequestCounts & { kind: MadeRequest['kind']; reach: Reach }>(
    `select reach, kind, sum(requests)::float8 as requests, sum(failed)::float8 as failed, sum(answered)::float8 as answered,
       sum(slow)::float8 as slow
     from outboxd.request_count
       join (values ('last5Minutes', interval '5 minutes'), ('lastHour', '1 hour'), ('lastDay', '1 day'), ('last28Days', '28 days'))
           r(reach, age)
         on minute > clock_timestamp() - age
     group by 1, 2`,
  )
  const counts = (reach: Reach): CountsByKind => ({ submit: sumOf(reach, 'submit'), status: sumOf(reach, 'status') })
  const sumOf = (reach: Reach, kind: MadeRequest['kind']): RequestCounts => {
    const row = rows.find((each) => each.reach === reach && each.kind === kind)
    const { requests = 0, failed = 0, answered = 0, slow = 0 } = row ?? {}
    return { requests, failed, answered, slow }
  }
  return {
    last5Minutes: counts('last5Minutes'),
    lastHour: counts('lastHour'),
    lastDay: counts('lastDay'),
    last28Days: counts('last28Days'),
  }
}

const hourInstance = '00000000-0000-0000-0000-000000000000'

/** Adds up the minutes of each hour that ended two days ago, and deletes hours after 29 days. */
export async function tidyRequestCounts(db: Database): Promise<void> {
  await db.query(`delete from outboxd.request_count where minute < clock_timestamp() - interval '29 days'`)
  await db.query(
    `with minutes as (
       delete from outboxd.request_count
       where minute < date_trunc('hour', clock_timestamp() - interval '2 days', 'UTC') and instance_id <> $1 returning *
     )
     insert into outboxd.request_count as c (minute, kind, instance_id, requests, failed, answered, slow)
     select date_trunc('hour', minute, 'UTC') as hour, kind, $1, sum(requests), sum(failed), sum(answered), sum(slow)
     from minutes group by hour, kind
     on conflict (minute, kind, instance_id) do update set requests = c.requests + excluded.requests,
       failed = c.failed + excluded.failed, answered = c.answered + excluded.answered, slow = c.slow + excluded.slow`,
    [hourInstance],
  )
}
