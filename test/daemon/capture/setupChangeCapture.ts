import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { asInstaller, installCapture } from '../../support/changeCapture.ts'
import { createDatabase } from '../../support/database.ts'

/** A database in which documents are captured. @param options more arguments of install */
export async function setup({
  tables,
  document = 'sale',
  options,
}: {
  tables: string
  document?: string
  options?: string
}) {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query(tables)
  await installCapture(pool)
  await asInstaller(pool, `select outboxd_capture.install('${document}', 'order'${options ? `, ${options}` : ''})`)
  const captured = async () =>
    (
      await pool.query<{ type: string; key: string; payload: string }>(
        'select type, key, payload::text from outbox order by id',
      )
    ).rows
  /** The ids of the documents that the outbox names, in its order. */
  const ids = async () =>
    (await pool.query<{ id: string }>(`select payload ->> 'id' as id from outbox order by outbox.id`)).rows.map(
      ({ id }) => id,
    )
  return { pool, captured, ids }
}

/** A document `sale` with child table `line`: sale 9 has line 90. A line may name a sale that is not there. */
export function setupSale(first = '') {
  return setup({
    tables: `${first} create table sale (id bigint primary key, state text); insert into sale values (9);
      create table line (id int primary key, sale bigint, amount int, owner bigint references sale on delete cascade on update cascade);
      insert into line values (90, 9, 1, 9)`,
    options: `children => '{line.sale}'`,
  })
}

export async function noted(pool: pg.Pool) {
  const { rows } = await pool.query(
    'select table_name as table, operation, document_id as key, sqlstate from outboxd_capture.error order by id',
  )
  return rows
}

export async function trouble(pool: pg.Pool) {
  return (await pool.query('select * from outboxd_capture.trouble order by 1, 2 desc')).rows
}
