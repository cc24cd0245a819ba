import { setTimeout as after } from 'node:timers/promises'
import { openPool } from '../../test/support/postgres.ts'

/** An ERP that writes a given number of records per second into its outbox. */
export interface Erp extends AsyncDisposable {
  setPace(perSecond: number): void
  insert(count: number, customerId: string): Promise<void>
}

const insertSql = `insert into outbox (type, payload)
  select 'data', jsonb_build_object('customerId', $2::text, 'orderDate', '2026-11-21T10:00:00Z', 'amount', 12.5, 'field2', 'night')
  from generate_series(1, $1::int)`

/** If the database does not answer, the ERP gives the record up and tries the next one. */
const patience = { max: 2, connectionTimeoutMillis: 2_000, query_timeout: 2_000 }

export function startErp(url: string): Erp {
  const pool = openPool(url, patience)
  const isOver = new AbortController()
  let pace = 1
  const insert = async (count: number, customerId: string) => void (await pool.query(insertSql, [count, customerId]))
  async function write(): Promise<void> {
    while (!isOver.signal.aborted) {
      await insert(pace, 'C1').catch(() => {}) // the ERP's database may be away, too
      await after(1_000, undefined, { signal: isOver.signal }).catch(() => {})
    }
  }

  const writing = write()
  return {
    setPace(perSecond) {
      pace = perSecond
    },
    insert,
    async [Symbol.asyncDispose]() {
      isOver.abort()
      await writing
      await pool.end()
    },
  }
}
