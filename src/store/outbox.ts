import type pg from 'pg'
import type { OutboxRecord, State } from '../record.ts'
import { begin, type Database } from './database.ts'
import { outboxChannel, outboxTableName } from './outboxTable.ts'

/** What a captured record has become, for its outbox row. */
export interface RowStatus {
  outboxId: string
  state: State
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

/** What is left in the outbox. */
export interface OutboxBacklog {
  waiting: number
  /** Creation of the oldest row that waits, epoch milliseconds; null where none does. */
  oldestMs: number | null
}

/** Rows in hand. Disposed of without being marked, or when the marking is lost, they are as new as before. */
export interface ClaimedRows extends AsyncDisposable {
  readonly records: OutboxRecord[]
  /** Says on the rows what has become of them, and lets them go. */
  mark(statuses: readonly RowStatus[]): Promise<void>
}

/** The client's outbox: read by the rows' own state, written only in the columns that are ours. */
export interface Outbox {
  /**
   * Claims up to `limit` new rows in the order of their ids, under row locks.
   *
   * @param exceptKeys rows of these keys stay where they are
   */
  claim(limit: number, exceptKeys: readonly string[]): Promise<ClaimedRows>
  /** The row as it is now, whatever its state; null where there is none of that id. */
  readRecord(outboxId: string): Promise<OutboxRecord | null>
  /** The rows that wait, in the order in which they would be claimed; locks and changes nothing. */
  readNew(limit: number): Promise<OutboxRecord[]>
  /** Whether any row waits; cheap. */
  hasNew(): Promise<boolean>
  /** Writes states to rows that were claimed. Rows that are gone are passed over. */
  report(statuses: readonly RowStatus[]): Promise<void>
  backlog(): Promise<OutboxBacklog>
  /** The channel that announces new rows; null where the table has no such trigger. */
  readonly channel: string | null
}

/** Opens the outbox table of design.md, section 10. @param payloadMaxBytes larger payloads are claimed unread */
export function openOutbox(pool: pg.Pool, table: string, payloadMaxBytes: number): Outbox {
  const { qualified } = outboxTableName(table)

  const selectSql = (payloadMost: string) => `
    select id::text as "outboxId", type, key, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "createdAt",
      case when octet_length(payload::text) <= ${payloadMost} then payload::text end as payload,
      case when octet_length(payload::text) > ${payloadMost}
        then format('the payload has %s bytes, more than the %s that PAYLOAD_MAX_BYTES allows', octet_length(payload::text), ${payloadMost})
      end as unreadable
    from ${qualified}`
  const claimSql = `${selectSql('$3')} where status = 'new' and (key is null or key <> all($2::text[]))
    order by id limit $1 for update skip locked`

  // What is completed or discarded stays so: a reporter that was stopped and wakes up late cannot take it back.
  const reportSql = `
    update ${qualified} o set status = r.state, transaction_id = r."transactionId", error_code = r."errorCode",
      error = r.error, updated_at = clock_timestamp()
    from json_to_recordset($1) as r("outboxId" bigint, state text, "transactionId" text, "errorCode" text, error text)
    where o.id = r."outboxId" and o.status not in ('completed', 'discarded')`

  const write = async (db: Database, statuses: readonly RowStatus[]) => {
    await db.query(reportSql, [JSON.stringify(statuses)])
  }

  return {
    channel: outboxChannel,
    async claim(limit, exceptKeys) {
      const transaction = await begin(pool)
      try {
        const { rows } = await transaction.db.query<OutboxRecord>(claimSql, [limit, exceptKeys, payloadMaxBytes])
        return {
          records: rows,
          async mark(statuses) {
            await write(transaction.db, statuses)
            await transaction.commit()
          },
          [Symbol.asyncDispose]: () => transaction[Symbol.asyncDispose](),
        }
      } catch (error) {
        await transaction[Symbol.asyncDispose]()
        throw error
      }
    },
    async readRecord(outboxId) {
      if (!/^-?\d{1,18}$/.test(outboxId)) return null
      const { rows } = await pool.query<OutboxRecord>(`${selectSql('$2')} where id = $1`, [outboxId, payloadMaxBytes])
      return rows[0] ?? null
    },
    async readNew(limit) {
      const { rows } = await pool.query<OutboxRecord>(`${selectSql('$2')} where status = 'new' order by id limit $1`, [
        limit,
        payloadMaxBytes,
      ])
      return rows
    },
    async hasNew() {
      const { rowCount } = await pool.query(`select from ${qualified} where status = 'new' limit 1`)
      return (rowCount ?? 0) > 0
    },
    report: (statuses) => write(pool, statuses),
    async backlog() {
      const { rows } = await pool.query<OutboxBacklog>(
        `select count(*)::float8 as waiting,
           (select extract(epoch from created_at)::float8 * 1000 from ${qualified} where status = 'new' order by id limit 1)
             as "oldestMs"
         from ${qualified} where status = 'new'`,
      )
      return rows[0] as OutboxBacklog
    },
  }
}
