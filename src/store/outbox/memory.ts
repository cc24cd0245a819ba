import type { Database } from '../database.ts'
import { anotherRow, isSameRow, type RowConflict } from '../ledger/sameRow.ts'

/** The sort values of a row, as text. */
export type Position = readonly string[]

/** A row as it is known again. */
export interface SeenRow {
  outboxId: string
  stamp: string
  createdAt: string | null
}

/** What the ledger remembers of an outbox table whose rows do not say that they are taken. */
export interface OutboxMemory {
  /** Which of these rows are in the ledger; and under whose ids it has others. */
  findKnown(rows: readonly SeenRow[]): Promise<{ known: ReadonlySet<string>; conflicts: RowConflict[] }>
  /** Up to where all rows are known and none can come any more; null: nowhere yet. @param outbox oids of database and table */
  readCursor(outbox: string): Promise<Position | null>
  advanceCursor(outbox: string, position: Position): Promise<void>
}

/** @param epoch which of the outboxes that the ledger has served: ids and positions count within it alone */
export function openMemory(ledger: Database, epoch: number): OutboxMemory {
  return {
    async findKnown(seen) {
      const { rows } = await ledger.query<{ id: string; same: boolean; state: string; recorded: string }>(
        `select s.outbox_id as id, ${isSameRow} as same, s.state,
           to_char(s.recorded_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as recorded
         from json_to_recordset($1) as r("outboxId" text, stamp text, "createdAt" text)
           join outboxd.submission s on s.outbox_id = r."outboxId" and s.outbox = $2`,
        [JSON.stringify(seen), epoch],
      )
      const others = rows.filter(({ same }) => !same)
      return {
        known: new Set(rows.map(({ id }) => id)),
        conflicts: others.map(({ id, state, recorded }) => ({ outboxId: id, detail: anotherRow(state, recorded) })),
      }
    },
    async readCursor(outbox) {
      const { rows } = await ledger.query<{ position: string[] }>(
        'select position from outboxd.outbox_cursor where epoch = $1 and outbox = $2',
        [epoch, outbox],
      )
      return rows[0]?.position ?? null
    },
    async advanceCursor(outbox, position) {
      await ledger.query(
        `insert into outboxd.outbox_cursor (epoch, outbox, position) values ($1, $2, $3)
         on conflict (epoch, outbox) do update set position = excluded.position, advanced_at = clock_timestamp()`,
        [epoch, outbox, position],
      )
    },
  }
}
