import type { Database } from '../database.ts'

/** The sort values of a row, as text. */
export type Position = readonly string[]

/** What the ledger remembers of an outbox table whose rows do not say that they are taken. */
export interface OutboxMemory {
  /** Which of these rows are in the ledger. */
  findKnown(outboxIds: readonly string[]): Promise<ReadonlySet<string>>
  /** Up to where all rows are known and none can come any more; null: nowhere yet. @param outbox oids of database and table */
  readCursor(outbox: string): Promise<Position | null>
  advanceCursor(outbox: string, position: Position): Promise<void>
}

export function openMemory(ledger: Database): OutboxMemory {
  return {
    async findKnown(outboxIds) {
      const { rows } = await ledger.query<{ id: string }>(
        'select outbox_id as id from outboxd.submission where outbox_id = any($1::text[])',
        [outboxIds],
      )
      return new Set(rows.map(({ id }) => id))
    },
    async readCursor(outbox) {
      const { rows } = await ledger.query<{ position: string[] }>(
        'select position from outboxd.outbox_cursor where outbox = $1',
        [outbox],
      )
      return rows[0]?.position ?? null
    },
    async advanceCursor(outbox, position) {
      await ledger.query(
        `insert into outboxd.outbox_cursor (outbox, position) values ($1, $2)
         on conflict (outbox) do update set position = excluded.position, advanced_at = clock_timestamp()`,
        [outbox, position],
      )
    },
  }
}
