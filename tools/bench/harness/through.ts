import type { BenchDatabase } from './postgres.ts'

/** The records that were completed in a time span. */
export interface Through {
  records: number
  pollsPerRecord: number
  /** Times between the end at the service and its entry in the ledger. */
  delaysMs: number[]
}

/** Reads the submissions completed in a time span of the database's clock, and their delays by the service's log. */
export async function readThrough({ pool }: BenchDatabase, from: Date, until: Date): Promise<Through> {
  const { rows } = await pool.query<{ polls: number; delayMs: number }>(
    `select s.polls, extract(epoch from s.ended_at - t.done_at)::float8 * 1000 as "delayMs"
     from outboxd.submission s join sandbox.transactions t on t.id = s.transaction_id
     where s.state = 'completed' and s.ended_at > $1 and s.ended_at <= $2`,
    [from, until],
  )
  return {
    records: rows.length,
    pollsPerRecord: rows.reduce((sum, { polls }) => sum + polls, 0) / rows.length,
    delaysMs: rows.map(({ delayMs }) => delayMs),
  }
}

/** Counts requests that the service refused because the limit was exceeded. */
export async function countRefused({ pool }: BenchDatabase): Promise<number> {
  const { rows } = await pool.query<{ refused: number }>(
    'select count(*)::int as refused from sandbox.ledger where status = 429',
  )
  return rows[0]?.refused ?? 0
}

/** Counts submissions on their way: neither ended nor waiting for a person. */
export async function countUnderWay({ pool }: BenchDatabase): Promise<number> {
  const { rows } = await pool.query<{ underWay: number }>(
    `select count(*)::int as "underWay" from outboxd.submission where ended_at is null`,
  )
  return rows[0]?.underWay ?? 0
}

/** Reads the database's clock, which the ledger's times come from. */
export async function databaseNow({ pool }: BenchDatabase): Promise<Date> {
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now')
  return rows[0]?.now ?? new Date(Number.NaN)
}
