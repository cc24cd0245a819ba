import type { StoreConfig } from '../config.ts'
import { readPublishedTypes } from '../ledger/instances.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import type { Databases } from '../operations/databases.ts'
import { withOutbox } from '../operations/databases.ts'
import { countTypes } from '../outbox/backlog.ts'
import { type OutboxTable, saysTaken } from '../outbox/outboxTable.ts'
import type { TypeCount } from '../outbox/rowExpressions.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import { type Finding, notAsked } from './check/finding.ts'

const what = 'types'

/** Whether each record that waits, and each type that the description speaks of, has a mapping file, here or with a running daemon. */
export async function checkTypes(
  databases: Databases,
  { mappingsDir }: StoreConfig,
  table: OutboxTable,
): Promise<Finding> {
  const here = typesHere(mappingsDir)
  if (here === null) return notAsked(what, 'the mapping files cannot be used')
  const elsewhere = await readPublishedTypes(databases.ledger)
  const known = new Set([...here, ...(elsewhere ?? [])])
  const waiting = await withOutbox(databases, countTypes)
  const message = typeProblems({ known, named: typesNamed(table), waiting })
  if (message.length > 0) return { what, mark: 'problem', message: message.join('\n') }
  return { what, mark: 'ok', message: waiting.length === 0 ? 'no row waits' : mappedMessage(waiting, saysTaken(table)) }
}

/** Where the ledger remembers, the rows that are counted by their types may be known: they lie behind the position. */
function mappedMessage(waiting: readonly TypeCount[], doWait: boolean): string {
  return doWait
    ? `each row that waits has a mapping file: ${waiting.map(({ type, waiting }) => `${type} ${waiting}`).join(', ')}`
    : `each type of the rows from the position on has a mapping file: ${waiting.map(({ type }) => type).join(', ')}`
}

function typesHere(mappingsDir: string): string[] | null {
  try {
    return [...loadMappings(mappingsDir).keys()]
  } catch {
    return null // the mappings' own finding says why
  }
}

/** The types that the description itself gives to rows. */
const typesNamed = ({ type }: OutboxTable): string[] =>
  type.kind === 'constant' ? [type.type] : [...new Set(type.values.values())]

/** Types without a mapping file, each with what becomes of it. Pure. */
export function typeProblems({
  known,
  named,
  waiting,
}: {
  known: ReadonlySet<string>
  named: readonly string[]
  waiting: readonly { type: string; waiting: number }[]
}): string[] {
  const counts = new Map(waiting.map(({ type, waiting }) => [type, waiting]))
  const unknown = [...new Set([...counts.keys(), ...named])].filter((type) => !known.has(type))
  return unknown.map((type) => {
    const rows = counts.get(type) ?? 0
    const wait = rows === 0 ? 'none waits now' : `${rows} ${rows === 1 ? 'waits' : 'wait'}`
    const which = type === '' ? 'rows without a type' : `rows of type "${type}"`
    return `${which} have no mapping file and will be rejected; ${wait}${didYouMean(type, known)}`
  })
}
