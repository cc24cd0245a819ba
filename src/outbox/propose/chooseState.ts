import type { State } from '../../model.ts'
import { quoteYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import type { CatalogColumn, CatalogTable } from './catalogTable.ts'
import { findWord, isStatus, saysDone, stateWords } from './columnNames.ts'

/** What says that a row waits, and what the file says of it. */
export interface StateChoice {
  /** Null: nothing does, the ledger remembers. */
  readonly column: CatalogColumn | null
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
}

/** Words that rows have in a column, where no enum and no CHECK lists them; null where there are many. */
export type WordsOf = (column: string) => readonly string[] | null

const isTime = ({ type }: CatalogColumn) => /^(timestamp with(out)? time zone|date)$/.test(type)
const isNumber = ({ type }: CatalogColumn) => /^(smallint|integer|bigint|numeric)$/.test(type)
export const isText = ({ type }: CatalogColumn) => /^(text|character varying|character|citext)$/.test(type)

/** Columns that may hold the words of a state: whether they do, `words` must say. */
export function findStatusColumn(columns: readonly CatalogColumn[], isOutbox: boolean): CatalogColumn | null {
  return columns.find((each) => isStatus(each.name, isOutbox) && (isText(each) || each.allowed !== null)) ?? null
}

/**
 * Chooses the column that says whether a row waits: a time that is NULL until then, a flag, a status, or none.
 *
 * @param isOutbox the table is there to be read by somebody like us
 */
export function chooseState(table: CatalogTable, isOutbox: boolean, wordsOf: WordsOf): StateChoice {
  const columns = table.isUpdatable ? table.columns.filter(({ isGenerated }) => !isGenerated) : []
  const time = columns.find((each) => isTime(each) && !each.notNull && saysDone(each.name, isOutbox, 'time'))
  if (time !== undefined) return byTime(time)
  const flag = columns.find(
    (each) => (each.type === 'boolean' || isNumber(each)) && saysDone(each.name, isOutbox, 'flag'),
  )
  if (flag !== undefined) return byFlag(flag)
  const status = findStatusColumn(columns, isOutbox)
  if (status !== null) return byStatus(status, status.allowed ?? wordsOf(status.name) ?? [])
  return byNothing(table)
}

function byTime(column: CatalogColumn): StateChoice {
  return {
    column,
    warnings: [],
    lines: [
      { text: 'state:' },
      { text: `  timestamp: ${quoteYaml(column.name)}`, comment: 'NULL: the row waits' },
      { text: '  set: [completed]', comment: 'the time is written then; [queued] would be as the row is taken' },
    ],
  }
}

function byFlag(column: CatalogColumn): StateChoice {
  const isBoolean = column.type === 'boolean'
  const not = isBoolean ? 'false' : '0'
  const waiting = column.notNull ? not : `[${not}, null]`
  return {
    column,
    warnings: [],
    lines: [
      { text: 'state:' },
      { text: `  flag: ${quoteYaml(column.name)}`, comment: column.exactType },
      { text: `  new: ${waiting}`, comment: 'the row waits' },
      { text: `  done: ${isBoolean ? 'true' : '1'}` },
      { text: '  set: [queued]', comment: 'as soon as the row is taken' },
    ],
  }
}

const knownWords = Object.values(stateWords).flat()
const states = ['queued', 'completed', 'failed', 'rejected', 'uncertain'] as const satisfies readonly State[]

/** @param words of an enum, of a CHECK, or of the rows that are there */
function byStatus(column: CatalogColumn, words: readonly string[]): StateChoice {
  const fallback = /^'((?:[^']|'')*)'/.exec(column.default ?? '')?.[1]?.replaceAll("''", "'") ?? null
  const waiting = findWord([...(fallback === null ? [] : [fallback]), ...words], stateWords.new)
  const written = states.flatMap((state) => {
    const word = wordFor(column, words, state, waiting)
    return word === null ? [] : [{ state, word }]
  })
  const seen = words.length > 0 ? `; it has ${words.map(quoteYaml).join(', ')}` : ''
  const knows = written.some(({ state }) => state === 'queued')
  const warnings = knows
    ? []
    : [
        `nothing in "${column.name}" says that a row is taken: the ledger remembers which rows were; a value for "queued" is simpler and cheaper`,
      ]
  const odd = words.filter((word) => findWord([word], knownWords) === null)
  if (odd.length > 0)
    warnings.push(
      `"${column.name}" has words that need not be about data (${odd.join(', ')}): where it is a state of your business, another column has to say what is sent`,
    )
  const tooLong = column.allowed === null ? states.filter((state) => !fits(column, state)) : []
  if (tooLong.length > 0)
    warnings.push(
      `"${column.name}" is ${column.exactType}, which cannot take ${tooLong.join(', ')}: a shorter word of yours, or a longer column`,
    )
  return {
    column,
    warnings,
    lines: [
      { text: 'state:' },
      { text: `  status: ${quoteYaml(column.name)}`, comment: `${column.exactType}${seen}` },
      waiting === null
        ? {
            text: '  new: []',
            trial: '  new: FILL_IN',
            fillIn: `which values say that the row waits? null for NULL${seen}`,
          }
        : { text: `  new: ${quoteYaml(waiting)}`, comment: 'the row waits' },
      ...written.map(({ state, word }) => ({ text: `  ${state}: ${quoteYaml(word)}`, comment: meanings[state] })),
    ],
  }
}

const meanings: Record<(typeof states)[number], string> = {
  queued: 'as soon as the row is taken',
  completed: 'the service finished it',
  failed: 'the service said no',
  rejected: 'it does not map, or the service found its data invalid',
  uncertain: 'nobody knows whether it arrived: a person looks',
}

/** A word of theirs; where anything may stand there, ours. */
function wordFor(
  column: CatalogColumn,
  words: readonly string[],
  state: (typeof states)[number],
  waiting: string | null,
): string | null {
  const theirs = findWord(
    words.filter((word) => word !== waiting),
    stateWords[state],
  )
  if (theirs !== null) return theirs
  if (column.allowed === null) return fits(column, state) && state !== waiting ? state : null
  return state === 'rejected' ? findWord(words, stateWords.failed) : null
}

/** Whether the word is not longer than the column. */
function fits({ exactType }: CatalogColumn, word: string): boolean {
  const most = /^character(?: varying)?\((\d+)\)/.exec(exactType)?.[1]
  return most === undefined || word.length <= Number(most)
}

function byNothing({ name, isUpdatable, kind }: CatalogTable): StateChoice {
  const why = isUpdatable || kind === 'm' ? '' : ', and nobody can write to it'
  return {
    column: null,
    lines: [{ text: 'state: none', comment: 'the ledger remembers which rows were taken; nothing is written here' }],
    warnings: [
      `no column of "${name}" says whether a row was sent${why}: every row that is there would be sent. To leave its history alone: outboxd adopt --start now, before the first start`,
    ],
  }
}
