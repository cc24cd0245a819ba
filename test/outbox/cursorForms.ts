import type pg from 'pg'

/** A table without marks. */
export const ddl = `create table source (id bigint generated always as identity primary key, type text default 'data', key text, payload jsonb default '{}')`
export const common = `
table: source
id: id
type: type
key: key
payload: payload
state: none`

/** The two ways in which a cursor orders the rows of a table without marks. */
export const cursorForms = {
  'a position in a sequence': { ddl, yaml: `${common}\nsequence: id` },
  'the order of transactions': { ddl, yaml: common },
}

/** Inserts rows that the ledger knows. */
export async function insertKnownRows(pool: pg.Pool, first: number, last: number): Promise<void> {
  await pool.query(`insert into source (key) select null from generate_series(${first}, ${last})`)
  await markKnown(pool, first, last)
}

/** Enters ids into the ledger as rejected records. */
export async function markKnown(pool: pg.Pool, first: number, last: number): Promise<void> {
  await pool.query(`insert into outboxd.submission (id, outbox_id, type, recorded_at, state, idempotency_key, ended_at)
    select gen_random_uuid(), n::text, 'data', now(), 'rejected', gen_random_uuid(), now() from generate_series(${first}, ${last}) n`)
}
