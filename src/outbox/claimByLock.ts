import type { RowsRequest } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { idsOf } from './idsOf.ts'
import { isNoValueOfType } from './isNoValueOfType.ts'
import { createKeyOrder } from './keyOrder.ts'
import type { RowExpressions } from './statements.ts'

interface LockedRow {
  outboxId: string
  /** Stands for the row's key. */
  line: string | null
}

const roundsMost = 5
const leftTypesAmong = 2_000

export interface ClaimStatements {
  readonly lock: string
  readonly lockById: string
  readonly overtaking: string
  readonly leftTypes: string
}

export function claimStatements(from: string, rows: RowExpressions): ClaimStatements {
  const { waits, key, line, type, sort, idType, idText } = rows
  const expressions = sort.map(({ expression }) => expression)
  const order = expressions.join(', ')
  const id = expressions.at(-1)
  const [first, second] = sort
  // Asked in the table, where its bytes are what they are. NULL comes last in the order, and a comparison of rows would lose it.
  const last = `(select ${first?.expression} from ${from} where ${id} = $4::${idType} limit 1)`
  const upToLast =
    second === undefined || first === undefined
      ? `${id} <= $4::${idType}`
      : `((${first.expression}, ${second.expression}) <= (${last}, $4::${idType})
          or (${last} is null and (${first.expression} is not null or ${id} <= $4::${idType})))`
  return {
    // Not "for update": that would wait for, and hold up, whoever inserts rows that refer to these.
    lock: `select ${idText} as "outboxId", ${line} as line
      from ${from} where ${waits} and ${cutId(idText)} <> all($2::text[]) and not ${stays(type, 3)}
        and (${key} is null or (${key} <> all($5::text[]) and ${line} <> all($6::bigint[])) or ${id} = any($7::${idType}[]))
      order by ${order} limit $1 for no key update of o skip locked`,
    lockById: `select ${idText} as "outboxId" from ${from} where ${waits} and ${id} = $1::${idType}
      for no key update of o skip locked`,
    overtaking: `select "outboxId" from (
        select ${idText} as "outboxId", ${id} = any($2::${idType}[]) as locked,
          bool_or(${id} <> all($2::${idType}[]) and ${cutId(idText)} <> all($3::text[])) over (partition by ${line} order by ${order}) as "isBehind"
        from ${from} where ${waits} and ${line} = any($1::bigint[]) and ${upToLast}
      ) line where locked and "isBehind"`,
    leftTypes: `select distinct type from (
        select ${type} as type from ${from} where ${waits} and ${stays(type, 1)} order by ${order} limit ${leftTypesAmong}
      ) waiting`,
  }
}

/** As long as the subject of a problem may be. */
export const idCharsMax = 500

/** Ids of rows that stay are compared as text: they may be of another outbox, and no value of this one's type. */
export const cutId = (idText: string) => `left(${idText}, ${idCharsMax})`

/** Whether a row is left to an instance that knows its type; `$at` are the types that we know, the next those of others. */
export function stays(type: string, at: number): string {
  return `(${type} <> all($${at}::text[]) and ($${at + 1}::text[] is null or ${type} = any($${at + 1}::text[])))`
}

/**
 * Locks up to `limit` rows that wait, lowest first. A row stays if one of its key before it waits and could not be locked:
 * someone else has that one in hand, or it is put off, or left to another instance, and must not be overtaken. It stays,
 * too, if there are enough of its key.
 *
 * @returns their ids, in order
 */
export async function lockRows(db: Database, statements: ClaimStatements, request: RowsRequest): Promise<string[]> {
  const { limit, lineMax, exceptKeys, skipped, types } = request
  const closed = new Set<string>()
  let taken: LockedRow[] = []
  for (let round = 1; ; round++) {
    const { rows } = await db.query<LockedRow>(statements.lock, [
      limit,
      cutIdsOf(skipped),
      types.known,
      types.elsewhere,
      exceptKeys,
      [...closed],
      idsOf(taken),
    ])
    const overtaking = await findOvertaking(db, statements, rows, skipped)
    taken = takeInLine(rows, overtaking, lineMax)
    const hasEnough = taken.length === rows.length || rows.length < limit || round >= roundsMost
    if (hasEnough) return idsOf(taken)
    const kept = new Set(taken)
    for (const row of rows) if (!kept.has(row) && row.line !== null) closed.add(row.line)
  }
}

/** Locks the row of this id. @returns it, or nothing: it does not wait, or is someone else's, or no row can have that id */
export async function lockById(db: Database, statements: ClaimStatements, outboxId: string): Promise<string[]> {
  try {
    return idsOf((await db.query<LockedRow>(statements.lockById, [outboxId])).rows)
  } catch (error) {
    if (isNoValueOfType(error)) return []
    throw error
  }
}

/** Which of the rows that were locked have one of their key before them that was not. */
async function findOvertaking(
  db: Database,
  { overtaking }: ClaimStatements,
  locked: readonly LockedRow[],
  skipped: RowsRequest['skipped'],
): Promise<ReadonlySet<string>> {
  const lines = new Set(locked.flatMap(({ line }) => (line === null ? [] : [line])))
  const last = locked.at(-1)
  if (lines.size === 0 || last === undefined) return new Set()
  const { rows } = await db.query<{ outboxId: string }>(overtaking, [
    [...lines],
    idsOf(locked),
    cutIdsOf(skipped.filter(({ isCaptured }) => isCaptured)),
    last.outboxId,
  ])
  return new Set(idsOf(rows))
}

/** The rows that may be taken: of each key the first ones, up to one that overtakes, and at most `lineMax`. */
function takeInLine(rows: readonly LockedRow[], overtaking: ReadonlySet<string>, lineMax: number): LockedRow[] {
  const goes = createKeyOrder(lineMax)
  return rows.filter(({ outboxId, line }) => goes(line, !overtaking.has(outboxId)))
}

const cutIdsOf = (rows: readonly { outboxId: string }[]) => rows.map(({ outboxId }) => outboxId.slice(0, idCharsMax))

/** Where several instances know different types, those of the first rows that are left to another. */
export async function findLeftTypes(
  db: Database,
  { leftTypes }: ClaimStatements,
  { types }: RowsRequest,
): Promise<string[]> {
  if (types.elsewhere?.length === 0) return []
  const { rows } = await db.query<{ type: string }>(leftTypes, [types.known, types.elsewhere])
  return rows.map(({ type }) => type)
}
