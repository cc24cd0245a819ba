import { differentRowMessage, isOtherRowSql, type RowConflict } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'

export type CursorPosition = readonly string[]

export interface Cursor {
  /** The ledger has all rows up to here, and no new row can appear there. */
  position: CursorPosition
  /** The sequence's relfilenode when the cursor was stored. A restart of the sequence changes the number. */
  sequenceFile: string | null
}

export interface SeenRow {
  outboxId: string
  /** The creation time as the table writes it. */
  created: string | null
}

export interface DatedRow extends SeenRow {
  /** ISO 8601 in UTC with microseconds. */
  createdAt: string | null
}

interface KnownRows {
  /** The ids that the ledger has. */
  known: ReadonlySet<string>
  /** Rows that are not those that were captured under their ids. */
  conflicts: RowConflict[]
}

export class LedgerMemory {
  readonly #ledger: Database
  readonly #selection: string

  /** @param selection digest of filter, start and order */
  constructor(ledger: Database, selection: string) {
    this.#ledger = ledger
    this.#selection = selection
  }

  async findCapturedRows(seen: readonly SeenRow[]): Promise<KnownRows> {
    const { rows } = await this.#ledger.query<{ id: string; isOther: boolean; state: string; recorded: string }>(
      `select s.outbox_id as id, ${isOtherRowSql} as "isOther", s.state,
         to_char(s.recorded_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as recorded
       from json_to_recordset($1) as r("outboxId" text, created text)
         join outboxd.taken_row s on s.outbox_id = r."outboxId"`,
      [JSON.stringify(seen.map(({ outboxId, created }) => ({ outboxId, created })))],
    )
    return {
      known: new Set(rows.map(({ id }) => id)),
      conflicts: rows
        .filter(({ isOther }) => isOther)
        .map(({ id, state, recorded }) => ({ outboxId: id, detail: differentRowMessage(state, recorded) })),
    }
  }

  async readCapturedIds(limit: number): Promise<string[]> {
    const { rows } = await this.#ledger.query<{ id: string }>(
      'select outbox_id as id from outboxd.submission order by submission.id desc limit $1',
      [limit],
    )
    return rows.map(({ id }) => id)
  }

  async readCursor(outbox: string): Promise<Cursor | null> {
    const { rows } = await this.#ledger.query<Cursor>(
      'select position, sequence_file as "sequenceFile" from outboxd.outbox_cursor where outbox = $1',
      [`${outbox}.${this.#selection}`],
    )
    return rows[0] ?? null
  }

  async advanceCursor(outbox: string, { position, sequenceFile }: Cursor): Promise<void> {
    await this.#ledger.query(
      `insert into outboxd.outbox_cursor (outbox, position, sequence_file) values ($1, $2, $3)
       on conflict (outbox) do update set position = excluded.position, sequence_file = excluded.sequence_file,
         advanced_at = clock_timestamp()`,
      [`${outbox}.${this.#selection}`, position, sequenceFile],
    )
  }
}
