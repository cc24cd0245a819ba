import type pg from 'pg'
import { proposeFilesForTable } from '../../src/describe/proposeFilesForTable.ts'

/** Creates the trigger that `outboxd describe --capture` writes. @returns its SQL */
export async function captureDocuments(
  pool: pg.Pool,
  table: string,
  { type = null, children = [] }: { type?: string | null; children?: readonly string[] } = {},
): Promise<string> {
  const [first = '', second] = table.split('.')
  const named = second === undefined ? { schema: null, table: first } : { schema: first, table: second }
  const outbox = { schema: null, table: 'outbox' }
  const capture = { children, outbox, command: 'outboxd describe' }
  const described = await proposeFilesForTable(pool, named, new Map(), { endpoint: 'orders', type, capture })
  const file = described.kind === 'described' ? described.files.find(({ name }) => name.endsWith('.sql')) : undefined
  if (file === undefined) throw new Error(JSON.stringify(described))
  await pool.query(`begin; ${file.text} commit`)
  return file.text
}

/** Creates a role without rights, unless another test of the same server has created it. */
export async function createRole(pool: pg.Pool, role: string): Promise<void> {
  await pool.query(
    `do $$begin create role ${role}; exception when duplicate_object or unique_violation then null; end$$`,
  )
}
