import { type TableShape, textSql } from './columns.ts'
import type { SeenRow } from './ledgerMemory.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import type { OutboxTable, WriteBack } from './outboxTable.ts'
import { formOf, saysEnd, timeWord, type Word } from './stateForms.ts'
import { failingRows } from './unfilterable.ts'

/** What a row says of its record in the columns that are ours. */
export interface SaidRow {
  outboxId: string
  /** Of the state, where that is more than that it waits or was queued. */
  said: string | null
  /** It came to its end, and may have been completed: nothing else is said so. */
  isEnd: boolean
  /** What its column for the transaction says; null where there is none, or nothing in it. */
  transactionId: string | null
}

type Row = SaidRow & SeenRow & { waits: boolean }

/** Of the ids in $1, whatever their states are and whether or not the filter takes them in; `unstamped` asks nothing that could fail for what a row holds. */
export function saidStatements({ table, shape, ideal }: OpenTable): Record<'stamped' | 'unstamped', string> {
  const { from, id, stamp, createdAt, mayWait, idType, idText } = ideal
  const words = wordsOf(table, shape)
  const said = words.length === 0 ? 'null::text' : `coalesce(${words.map(({ text }) => text)})`
  const isEnd = ['false', ...words.map((word) => word.isEnd)].map((each) => `coalesce(${each}, false)`).join(' or ')
  const these = (its: string, recorded: string) =>
    `select ${idText} as "outboxId", ${its} as stamp, ${recorded} as "createdAt", (${mayWait}) is true as waits,
       ${said} as said, ${isEnd} as "isEnd", ${transactionSql(table, shape)} as "transactionId"
     from ${from} where ${id} = any($1::${idType}[])`
  return { stamped: these(stamp, createdAt), unstamped: these(`'unreadable'`, 'null::text') }
}

/** What a row's columns for the transaction say, an expression; NULL where there is none, or nothing in it. */
export function transactionSql({ write }: OutboxTable, shape: TableShape): string {
  const texts = write
    .filter(({ what }) => what === 'transaction_id')
    .map(({ column: name }) => `nullif(btrim(${textSql(name, shape)}), '')`)
  return texts.length === 0 ? 'null::text' : `coalesce(${texts})`
}

/**
 * Reads what those of these rows say that are there and are the ones that the ledger knows. One that cannot be known again, because it
 * raises an error, counts as the one; one that waits and has other contents does not.
 */
export async function readSaid(outbox: Outbox, outboxIds: readonly string[]): Promise<SaidRow[]> {
  const table = await outbox.open()
  const { stamped, unstamped } = saidStatements(table)
  const rows: Row[] = []
  const ask = async (statement: string, ids: readonly string[]) => {
    rows.push(...(await outbox.pool.query<Row>(statement, [ids])).rows)
  }
  const unread = await failingRows(outboxIds, (those) => ask(stamped, those))
  await failingRows(unread, (those) => ask(unstamped, those)) // what fails now is no id of this table
  const { known, conflicts, edited } = await table.memory.findKnown(
    rows.map(({ outboxId, stamp, createdAt }) => ({ outboxId, stamp, createdAt })),
  )
  const others = new Set(conflicts.map(({ outboxId }) => outboxId))
  const changed = new Set(edited)
  return rows
    .filter(({ outboxId, waits }) => known.has(outboxId) && !others.has(outboxId) && !(waits && changed.has(outboxId)))
    .map(({ outboxId, said, isEnd, transactionId }) => ({ outboxId, said, isEnd, transactionId }))
}

function wordsOf(table: OutboxTable, shape: TableShape): Word[] {
  const { state, write } = table
  return [formOf(state)?.word(shape) ?? null, ...write.map((each) => writtenWord(each, shape))].filter(
    (word) => word !== null,
  )
}

function writtenWord({ column: name, what, on }: WriteBack, shape: TableShape): Word | null {
  const text = textSql(name, shape)
  if (what === 'state')
    return { text: `case when ${text} <> 'queued' then ${text} end`, isEnd: `${text} in ('completed', 'discarded')` }
  return what === 'now' && on !== null && saysEnd(on) ? timeWord(name, shape, true) : null
}
