import type pg from 'pg'
import { proposeFilesForTable } from '../../src/describe/proposeFilesForTable.ts'

/** Creates the trigger that `outboxd describe --capture` writes. @returns its SQL */
export async function captureDocuments(
  pool: pg.Pool,
  table: string,
  {
    type = null,
    children = [],
    outbox = 'outbox',
  }: { type?: string | null; children?: readonly string[]; outbox?: string } = {},
): Promise<string> {
  const [first = '', second] = table.split('.')
  const named = second === undefined ? { schema: null, table: first } : { schema: first, table: second }
  const capture = { children, outbox: { schema: null, table: outbox } }
  const { files } = await proposeFilesForTable(pool, named, { endpoint: 'orders', type, capture })
  const file = files.find(({ name }) => name.endsWith('.sql'))
  if (file === undefined) throw new Error('no trigger is proposed')
  await pool.query(`begin; ${file.text} commit`)
  return file.text
}

/** Creates a role without rights, unless another test of the same server has created it. */
export async function createRole(pool: pg.Pool, role: string): Promise<void> {
  await pool.query(
    `do $$begin create role ${role}; exception when duplicate_object or unique_violation then null; end$$`,
  )
}
