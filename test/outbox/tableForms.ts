import type pg from 'pg'

/** A table that fits each form. */
export const ddl = `create table source (id bigint generated always as identity primary key, type text default 'data', key text,
  payload jsonb default '{}', taken boolean not null default false, done_at timestamptz)`
export const common = `
table: source
id: id
type: type
key: key
payload: payload`

export const appendOnly = { ddl, yaml: `${common}\nstate: none\nsequence: id` }
export const endOnly = { ddl, yaml: `${common}\nstate: { timestamp: done_at, set: [completed] }` }
export const marked = { ddl, yaml: `${common}\nstate: { flag: taken, set: [queued] }` }

/** The forms whose capture writes nothing to the table. */
export const unmarkedForms = { 'end only': endOnly, 'append-only': appendOnly }
export const tableForms = { marked, ...unmarkedForms }

/** Inserts rows that the ledger knows. */
export async function insertKnownRows(pool: pg.Pool, first: number, last: number): Promise<void> {
  await pool.query(`insert into source (key) select null from generate_series(${first}, ${last})`)
  await pool.query(`insert into outboxd.submission (id, outbox_id, type, recorded_at, state, idempotency_key, ended_at)
    select gen_random_uuid(), n::text, 'data', now(), 'rejected', gen_random_uuid(), now() from generate_series(${first}, ${last}) n`)
}
