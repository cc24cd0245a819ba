import type { Database } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'

/**
 * The place where a table is stored. A restored table is stored elsewhere, unless its server's folder or its rows were
 * restored in place.
 */
interface TableStorageLocation {
  systemId: string
  text: string
}

/** Reads where the outbox is stored; null if our role may not see it, or the server is a standby. */
export async function readTableStorageLocation(outbox: Outbox): Promise<TableStorageLocation | null> {
  const place = `select c.system_identifier::text as "systemId", pg_catalog.concat_ws('/', c.system_identifier::text,
      pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8), d.oid::text,
      pg_catalog.to_regclass($1)::oid::text) as text
    from pg_catalog.pg_control_system() c
    join pg_catalog.pg_database d on d.datname operator(pg_catalog.=) pg_catalog.current_database()`
  try {
    const { rows } = await outbox.pool.query<TableStorageLocation>(place, [await outbox.readQualifiedName()])
    return rows[0] ?? null
  } catch {
    return null
  }
}

/**
 * Records the place for `recover`, which compares it if the ledger was restored. Call this only while the ledger's
 * history is unchanged.
 */
export async function recordTableStorageLocation(outbox: Outbox): Promise<void> {
  const place = await readTableStorageLocation(outbox)
  await outbox.ledger.query(
    'update outboxd.outbox set place = $1 where is_current and place is distinct from $1 and $1::text is not null',
    [place?.text ?? null],
  )
}

export async function readRecordedStorageLocation(ledger: Database): Promise<string | null> {
  const { rows } = await ledger.query<{ place: string | null }>('select place from outboxd.outbox where is_current')
  return rows[0]?.place ?? null
}
