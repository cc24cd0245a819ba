import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Database, DatabaseUnusable } from '../postgres/database.ts'
import { migrationsDir } from './migrateStores.ts'

const partSchema = z.strictObject({
  /** Such as `constraint clock_pkey of clock`; unique. */
  name: z.string(),
  /** Makes it anew. */
  sql: z.string(),
  /** Only how fast things are found hangs on it. */
  isForSpeed: z.boolean(),
})

/** What holds the ledger's rows together: a constraint, an index, a trigger. */
export type StructurePart = z.infer<typeof partSchema>

/** The parts that are there and in force, in the order in which they can be made. NOT NULL is a part of the column; older servers have no constraint for it. */
export async function readStructure(db: Pick<Database, 'query'>): Promise<StructurePart[]> {
  const { rows } = await db.query<StructurePart>(
    `with mine as (select c.oid, c.relname from pg_catalog.pg_class c where c.relnamespace = to_regnamespace('outboxd')),
     part as (
       select case when n.contype = 'f' then 2 else 0 end as rank, 'constraint ' || n.conname || ' of ' || mine.relname as name, false as "isForSpeed",
         'alter table outboxd.' || mine.relname || ' add constraint ' || n.conname || ' ' || pg_catalog.pg_get_constraintdef(n.oid) as sql
       from pg_catalog.pg_constraint n join mine on mine.oid = n.conrelid
       where n.contype <> 'n' and n.convalidated
       union all
       select 1, 'index ' || i.relname || ' of ' || mine.relname, not x.indisunique, pg_catalog.pg_get_indexdef(i.oid)
       from pg_catalog.pg_index x join mine on mine.oid = x.indrelid join pg_catalog.pg_class i on i.oid = x.indexrelid
       where x.indisvalid and not exists (select from pg_catalog.pg_constraint n where n.conindid = i.oid and n.contype in ('p', 'u', 'x'))
       union all
       select 3, 'trigger ' || t.tgname || ' of ' || mine.relname, false, pg_catalog.pg_get_triggerdef(t.oid)
       from pg_catalog.pg_trigger t join mine on mine.oid = t.tgrelid
       where not t.tgisinternal and t.tgenabled <> 'D'
     )
     select name, sql, "isForSpeed" from part order by rank, name collate "C"`,
  )
  return rows
}

/** What the migrations have made and is not there any more, such as after a restore that went on past errors. */
export async function findMissingParts(db: Pick<Database, 'query'>): Promise<StructurePart[]> {
  const text = await readFile(join(migrationsDir, 'structure.json'), 'utf8')
  const expected = z.array(partSchema).parse(JSON.parse(text))
  const there = new Set((await readStructure(db)).map(({ name }) => name))
  return expected.filter(({ name }) => !there.has(name))
}

/** @throws DatabaseUnusable where something is missing by which no record is sent twice */
export async function assertWhole(db: Pick<Database, 'query'>, stateDatabaseUrl: string): Promise<void> {
  const missing = (await findMissingParts(db)).filter(({ isForSpeed }) => !isForSpeed)
  if (missing.length === 0) return
  const named = missing
    .slice(0, 3)
    .map(({ name }) => name)
    .join(', ')
  const more = missing.length > 3 ? ` and ${missing.length - 3} more` : ''
  const why = `its schema outboxd lacks ${named}${more}: it was restored in part, or somebody dropped it. \`outboxd check\` says how to make it anew`
  throw new DatabaseUnusable('STATE_DATABASE_URL', stateDatabaseUrl, why)
}
