import type { Database } from '../database.ts'
import type { RowExpressions } from './statements.ts'

/** A row as it was read, with the values that put it in order. */
export interface ReadRow {
  outboxId: string
  type: string
  key: string | null
  createdAt: string | null
  stamp: string
  raw: string | Buffer | null
  bytes: number | null
}

interface LockedRow extends ReadRow {
  position: (string | null)[]
}

const roundsMost = 5

export interface ClaimStatements {
  readonly lock: string
  readonly passedOver: string
}

export function claimStatements(from: string, { waits, key, record, sort, idType }: RowExpressions): ClaimStatements {
  const expressions = sort.map(({ expression }) => expression)
  const id = expressions.at(-1)
  const [first, second] = sort
  // NULL comes last in the order, and a comparison of rows would lose it.
  const upToLast =
    second === undefined || first === undefined
      ? `${id} <= $3::${idType}`
      : `((${first.expression}, ${second.expression}) <= ($4::${first.type}, $3::${idType})
          or ($4::${first.type} is null and (${first.expression} is not null or ${id} <= $3::${idType})))`
  return {
    // Not "for update": that would wait for, and hold up, whoever inserts rows that refer to these.
    lock: `select ${record}, array[${expressions.map((each) => `(${each})::text`).join(', ')}] as position
      from ${from} where ${waits} and (${key} is null or ${key} <> all($3::text[])) and ${isNotAside(id, 4)}
      order by ${expressions.join(', ')} limit $2 for no key update of o skip locked`,
    passedOver: `select distinct ${key} as key from ${from}
      where ${waits} and ${key} = any($1::text[]) and ${id} <> all($2::${idType}[]) and ${upToLast}`,
  }
}

/** As text, since what was put aside may be of another outbox, and cut like the subjects of problems. */
const isNotAside = (id: string | undefined, parameter: number) => `left(${id}::text, 500) <> all($${parameter}::text[])`

export interface ClaimLimits {
  bytesMost: number
  limit: number
  exceptKeys: readonly string[]
  /** Rows that were put aside; those of their keys wait behind them. */
  exceptIds: readonly string[]
}

/**
 * Locks up to `limit` rows that wait, lowest first. Of a key whose rows could not all be locked, up to the last of these,
 * none is taken: someone else has the missing one in hand, and those behind it must not overtake it.
 */
export async function lockRows(
  db: Database,
  { lock, passedOver }: ClaimStatements,
  { bytesMost, limit, exceptKeys, exceptIds }: ClaimLimits,
): Promise<ReadRow[]> {
  const except = new Set(exceptKeys)
  for (let round = 1; ; round++) {
    const { rows } = await db.query<LockedRow>(lock, [bytesMost, limit, [...except], exceptIds])
    const keys = new Set(rows.flatMap(({ key }) => (key === null ? [] : [key])))
    const last = rows.at(-1)
    if (keys.size === 0 || last === undefined) return rows
    const [order = null, id = order] = last.position
    const { rows: passed } = await db.query<{ key: string }>(passedOver, [
      [...keys],
      rows.map(({ outboxId }) => outboxId),
      id,
      ...(last.position.length > 1 ? [order] : []),
    ])
    if (passed.length === 0) return rows
    for (const { key } of passed) except.add(key)
    if (round >= roundsMost) return rows.filter(({ key }) => key === null || !except.has(key))
  }
}
