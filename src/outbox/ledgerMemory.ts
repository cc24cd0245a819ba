import {
  canErpEditRowsSql,
  differentRowMessage,
  isAcceptedEditSql,
  mayBeSameRowSql,
  type RowConflict,
  stampsDifferInContentSql,
} from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'

export type CursorPosition = readonly string[]

export interface StampedRow {
  outboxId: string
  stamp: string
  createdAt: string | null
}

interface KnownRows {
  /** The ids that the ledger has. */
  known: ReadonlySet<string>
  conflicts: RowConflict[]
  /** Rows with changed contents: edited rows, or different rows of the same type and key. */
  edited: string[]
  /** Rows that the ERP edited after their records were rejected or failed. Such edits are not conflicts. */
  repaired: string[]
}

export interface Cursor {
  /** The ledger has all rows up to here, and no new row can appear there. */
  position: CursorPosition
  /** The sequence's relfilenode when the cursor was stored. A restart of the sequence changes the number. */
  sequenceFile: string | null
  /** `outboxd adopt --same` declared the rows up to here captured. */
  sameUpto: CursorPosition | null
}

export class LedgerMemory {
  readonly #ledger: Database
  readonly #epoch: number
  readonly #selection: string

  /**
   * @param epoch number of this outbox among those that the ledger has served
   * @param selection digest of filter, start and order
   */
  constructor(ledger: Database, epoch: number, selection: string) {
    this.#ledger = ledger
    this.#epoch = epoch
    this.#selection = selection
  }

  async findCapturedRows(seen: readonly StampedRow[]): Promise<KnownRows> {
    const { rows } = await this.#ledger.query<{
      id: string
      same: boolean
      edited: boolean
      accepted: boolean
      meant: boolean
      state: string
      recorded: string
    }>(
      `select s.outbox_id as id, ${mayBeSameRowSql} as same, ${isAcceptedEditSql} as accepted, ${canErpEditRowsSql} as meant, ${stampsDifferInContentSql('s.row_stamp', 'r.stamp')} as edited, s.state,
         to_char(s.recorded_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as recorded
       from json_to_recordset($1) as r("outboxId" text, stamp text, "createdAt" text)
         join outboxd.taken_row s on s.outbox_id = r."outboxId" and s.outbox = $2`,
      [JSON.stringify(seen), this.#epoch],
    )
    const different = rows.filter(({ same }) => !same)
    const others = different.filter(({ accepted, edited }) => !accepted && !edited)
    const edited = different.filter((row) => !row.accepted && row.edited)
    const repaired = different.filter(({ accepted, meant }) => accepted && !meant)
    return {
      known: new Set(rows.map(({ id }) => id)),
      conflicts: others.map(({ id, state, recorded }) => ({
        outboxId: id,
        detail: differentRowMessage(state, recorded),
      })),
      edited: edited.map(({ id }) => id),
      repaired: repaired.map(({ id }) => id),
    }
  }

  async readCapturedIds(limit: number): Promise<string[]> {
    const { rows } = await this.#ledger.query<{ id: string }>(
      'select outbox_id as id from outboxd.submission where outbox = $1 order by submission.id desc limit $2',
      [this.#epoch, limit],
    )
    return rows.map(({ id }) => id)
  }

  async readCursor(outbox: string): Promise<Cursor | null> {
    const { rows } = await this.#ledger.query<Cursor>(
      `select position, sequence_file as "sequenceFile", same_upto as "sameUpto"
       from outboxd.outbox_cursor where epoch = $1 and outbox = $2`,
      [this.#epoch, `${outbox}.${this.#selection}`],
    )
    return rows[0] ?? null
  }

  async advanceCursor(outbox: string, { position, sequenceFile }: Omit<Cursor, 'sameUpto'>): Promise<void> {
    // `same_upto` holds for the table, whatever the filter of a cursor.
    await this.#ledger.query(
      `insert into outboxd.outbox_cursor (epoch, outbox, position, sequence_file, same_upto)
       values ($1, $2, $3, $4, (select same_upto from outboxd.outbox_cursor
         where epoch = $1 and starts_with(outbox, $5) and same_upto is not null order by advanced_at desc limit 1))
       on conflict (epoch, outbox) do update set position = excluded.position, sequence_file = excluded.sequence_file,
         advanced_at = clock_timestamp()`,
      [this.#epoch, `${outbox}.${this.#selection}`, position, sequenceFile, outbox],
    )
  }
}
