import type { Database } from '../postgres/database.ts'
import type { RowExpressions } from './statements.ts'

/** A row as it was read. */
export interface ReadRow {
  outboxId: string
  type: string
  key: string | null
  createdAt: string | null
  stamp: string
  raw: string | Buffer | null
  bytes: number | null
}

export interface ReadStatements {
  readonly sizes: string
  readonly byIds: string
}

export function readStatements(
  from: string,
  { waits, record, payload, idType, idText, sort }: RowExpressions,
): ReadStatements {
  const order = sort.map(({ expression }) => expression).join(', ')
  const id = sort.at(-1)?.expression
  const some = (parameter: number) => `${id} = any($${parameter}::${idType}[]) and ${waits} order by ${order}`
  return {
    sizes: `select ${idText} as "outboxId", octet_length(${payload}) as bytes from ${from} where ${some(1)}`,
    byIds: `select ${record} from ${from} where ${some(2)}`,
  }
}

/** What is held in memory of payloads at once; a few times as much while they are mapped and written. */
export const batchBytesMax = 16_000_000

/**
 * Reads the first of these rows that wait: as many as `batchBytesMax` holds, and always one.
 *
 * @param bytesMost larger payloads are not read at all
 */
export async function readFirstRows(
  db: Database,
  { sizes, byIds }: ReadStatements,
  outboxIds: readonly string[],
  bytesMost: number,
): Promise<ReadRow[]> {
  if (outboxIds.length === 0) return []
  const { rows } = await db.query<{ outboxId: string; bytes: number | null }>(sizes, [outboxIds])
  const read = await db.query<ReadRow>(byIds, [bytesMost, firstThatFit(rows, bytesMost)])
  return read.rows
}

function firstThatFit(rows: readonly { outboxId: string; bytes: number | null }[], bytesMost: number): string[] {
  let sum = 0
  const past = rows.findIndex(({ bytes }) => {
    sum += bytes === null || bytes > bytesMost ? 0 : bytes
    return sum > batchBytesMax
  })
  return rows.slice(0, past === -1 ? rows.length : Math.max(1, past)).map(({ outboxId }) => outboxId)
}
