import { type Database, queryOne } from './database.ts'

/**
 * Says if the collations of the database or of an index have changed since these were created, as after a new image or
 * an upgrade of glibc. Indexes over text then miss rows. Postgres knows versions from 15 on. The ledger's ids are
 * collated by bytes.
 */
export async function findCollationChange(db: Database): Promise<string | null> {
  const { version, name } = await queryOne<{ version: number; name: string }>(
    db,
    `select current_setting('server_version_num')::int as version, quote_ident(current_database()) as name`,
  )
  if (version < 150_000) return null
  const { rows: changed } = await db.query<{ before: string; now: string; refresh: string }>(
    `with used as materialized (select distinct unnest(indcollation) as id from pg_index)
     select datcollversion as before, pg_database_collation_actual_version(oid) as now,
       format('alter database %I refresh collation version', datname) as refresh
     from pg_database where datname = current_database() and datcollversion <> pg_database_collation_actual_version(oid)
     union all
     select collversion, pg_collation_actual_version(l.oid), format('alter collation %I.%I refresh version', nspname, collname)
     from used join pg_collation l on l.oid = used.id join pg_namespace n on n.oid = l.collnamespace
     where collversion <> pg_collation_actual_version(l.oid)`,
  )
  const [change] = changed
  if (change === undefined) return null
  const refresh = changed.map((each) => each.refresh).join('; ')
  return `the sort order of texts has changed with the system (collation version ${change.before}, now ${change.now}), so indexes over texts in the ERP's tables may miss rows. Rebuild them (reindex database ${name}), then run: ${refresh}`
}
