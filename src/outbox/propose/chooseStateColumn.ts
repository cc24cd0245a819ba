import type { State } from '../../model.ts'
import { quoteYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import { mustRowsBeMarked, suggestTableInstead } from '../findTableProblems.ts'
import type { CatalogColumn, CatalogTable } from './catalogTable.ts'
import { findMatchingValue, isDoneName, isStatusColumnName, isStatusLikeName, statusValues } from './columnNames.ts'
import {
  defaultTextOfColumn,
  findBusinessStatuses,
  findFlagLikeColumns,
  findSentColumnCandidates,
  isDynamicsStateColumn,
  isNumberColumn,
  isTextColumn,
  isTimeColumn,
  type ValuesOfColumn,
} from './findSentColumnCandidates.ts'

export interface StateChoice {
  /** Null if no column fits, or the user must choose. */
  readonly column: CatalogColumn | null
  readonly candidates: readonly CatalogColumn[]
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
}

export type RowCount = { readonly rows: number; readonly isEstimate: boolean } | null

export function findStatusColumn(columns: readonly CatalogColumn[], isOutbox: boolean): CatalogColumn | null {
  return (
    columns.find((each) => isStatusColumnName(each.name, isOutbox) && (isTextColumn(each) || each.allowed !== null)) ??
    null
  )
}

/**
 * Chooses the column that says whether a row waits: a time that is NULL until then, a flag, a status, or none. If a
 * column may be about goods, the user chooses, because otherwise rows that another program sent would be sent again.
 * @param isOutbox the table was made to be read by a program like outboxd
 */
export function chooseStateColumn(
  table: CatalogTable,
  isOutbox: boolean,
  valuesOf: ValuesOfColumn,
  rows: RowCount,
): StateChoice {
  if (mustRowsBeMarked(table.kind) && !table.isUpdatable) return bySomethingElse(table)
  const columns = table.isUpdatable ? table.columns.filter(({ isGenerated }) => !isGenerated) : []
  const time = columns.find((each) => isTimeColumn(each) && !each.notNull && isDoneName(each.name, isOutbox, 'time'))
  if (time !== undefined) return byTime(time, mustRowsBeMarked(table.kind))
  const flag = columns.find(
    (each) => (each.type === 'boolean' || isNumberColumn(each)) && isDoneName(each.name, isOutbox, 'flag'),
  )
  if (flag !== undefined) return byFlag(flag)
  const status = findStatusColumn(columns, isOutbox)
  if (status !== null)
    return byStatus(status, status.allowed ?? valuesOf(status.name) ?? [], mustRowsBeMarked(table.kind))
  const candidates = findSentColumnCandidates(table.columns, valuesOf)
  if (candidates.length > 0) return byPerson(table, isOutbox, candidates, valuesOf, rows)
  return mustRowsBeMarked(table.kind) ? bySomethingElse(table) : byNothing(table, rows)
}

function bySomethingElse({ kind, isUpdatable, below }: CatalogTable): StateChoice {
  const what = isUpdatable
    ? 'the column that outboxd sets on capture, because a view or a foreign table needs one (none of its columns looks like one); or'
    : 'nothing: a view or a foreign table without writes cannot be read;'
  return chosen(null, [
    {
      text: 'state:',
      trial: 'state: none',
      fillIn: `${what} ${suggestTableInstead(kind, below)}`,
    },
  ])
}

const chosen = (column: CatalogColumn | null, lines: readonly YamlLine[]): StateChoice => ({
  ...{ column, lines },
  candidates: [],
  warnings: [],
})

function byTime(column: CatalogColumn, atOnce: boolean): StateChoice {
  return chosen(column, [
    { text: 'state:' },
    { text: `  timestamp: ${quoteYaml(column.name)}`, comment: 'NULL until outboxd writes a time' },
    atOnce
      ? { text: '  set: [queued]', comment: 'on capture' }
      : {
          text: '  set: [completed]',
          comment: 'written on completion, else it stays NULL; with [queued] written on capture',
        },
  ])
}

function byFlag(
  column: CatalogColumn,
  [not, done]: readonly [string, string] = column.type === 'boolean' ? ['false', 'true'] : ['0', '1'],
): StateChoice {
  const waiting = column.notNull ? not : `[${not}, null]`
  return chosen(column, [
    { text: 'state:' },
    { text: `  flag: ${quoteYaml(column.name)}`, comment: column.exactType },
    { text: `  new: ${waiting}`, comment: 'the row waits' },
    { text: `  done: ${done}` },
    { text: '  set: [queued]', comment: 'on capture' },
  ])
}

const states = ['queued', 'completed', 'failed', 'rejected', 'uncertain'] as const satisfies readonly State[]

/**
 * @param words of an enum, of a CHECK, or of existing rows
 * @param atOnce true if the row must be marked on capture
 */
function byStatus(column: CatalogColumn, words: readonly string[], atOnce: boolean): StateChoice {
  const fallback = defaultTextOfColumn(column)
  const waiting = findMatchingValue([...(fallback === null ? [] : [fallback]), ...words], statusValues.new)
  const written = states.flatMap((state) => {
    const word = wordFor(column, words, state, waiting)
    return word === null ? [] : [{ state, word }]
  })
  const seen = words.length > 0 ? `; it has ${words.map(quoteYaml).join(', ')}` : ''
  const knows = written.some(({ state }) => state === 'queued')
  const warnings =
    knows || atOnce
      ? []
      : [
          `no word of "${column.name}" says that a row is captured, so the ledger remembers it. A value for "queued" is simpler and cheaper`,
        ]
  const odd = findBusinessStatuses({ ...column, default: null }, words)
  if (odd.length > 0)
    warnings.push(
      `"${column.name}" has words that may be about your business (${odd.join(', ')}). If it is the ERP's own state, choose another column`,
    )
  const tooLong = column.allowed === null ? states.filter((state) => !fits(column, state)) : []
  if (tooLong.length > 0)
    warnings.push(
      `"${column.name}" is ${column.exactType}, which cannot hold ${tooLong.join(', ')}: choose a shorter word, or a longer column`,
    )
  return {
    column,
    candidates: [],
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
  queued: 'on capture',
  completed: 'the service finished it',
  failed: 'the service said no',
  rejected: 'it does not map, or the service found its data invalid',
  uncertain: 'it may have arrived: it needs attention',
}

function wordFor(
  column: CatalogColumn,
  words: readonly string[],
  state: (typeof states)[number],
  waiting: string | null,
): string | null {
  const theirs = findMatchingValue(
    words.filter((word) => word !== waiting),
    statusValues[state],
  )
  if (theirs !== null) return theirs
  if (column.allowed === null) return fits(column, state) && state !== waiting ? state : null
  return state === 'rejected' ? findMatchingValue(words, statusValues.failed) : null
}

function fits({ exactType }: CatalogColumn, word: string): boolean {
  const most = /^character(?: varying)?\((\d+)\)/.exec(exactType)?.[1]
  return most === undefined || word.length <= Number(most)
}

/** Asks the user to choose: names the candidates, each with its line for the file. */
function byPerson(
  table: CatalogTable,
  isOutbox: boolean,
  candidates: readonly CatalogColumn[],
  valuesOf: ValuesOfColumn,
  rows: RowCount,
): StateChoice {
  const allowedOrSeen = ({ allowed, name }: CatalogColumn) => allowed ?? valuesOf(name) ?? []
  const shown = candidates.map((column) => {
    const words = allowedOrSeen(column)
    return `${column.name} (${column.type}${words.length > 0 ? `; it has ${words.join(', ')}` : ''})`
  })
  const question = candidates.length === 1 ? 'does this say' : 'does one of these say'
  return {
    column: null,
    candidates,
    warnings: [],
    lines: [
      {
        text: 'state:',
        trial: 'state: none',
        fillIn: `${question} that a row was sent: ${shown.join(', ')}? One of the lines below says how it is read${mustRowsBeMarked(table.kind) ? '' : `; none: ${allSent(rows)}`}`,
      },
      ...candidates.map((column) => ({
        text: `# ${entryFor(table, isOutbox, column, allowedOrSeen(column))}`,
        comment: column.exactType,
      })),
      mustRowsBeMarked(table.kind)
        ? { text: '', comment: `Without one it cannot be read: ${suggestTableInstead(table.kind, table.below)}` }
        : { text: '# state: none', comment: `${allSent(rows)}: see outboxd adopt --start now` },
    ],
  }
}

/** Shows in one line how a column would be read. If outboxd must not write to it, only a filter can use it. */
function entryFor(table: CatalogTable, isOutbox: boolean, column: CatalogColumn, words: readonly string[]): string {
  if (!table.isUpdatable || column.isGenerated || (!isOutbox && isWorkflow(column, words)))
    return 'state: none, with a filter that excludes rows that the column marks as sent'
  const pair = findPair(column, words)
  const { lines } = isTimeColumn(column)
    ? byTime(column, mustRowsBeMarked(table.kind))
    : pair === null
      ? byStatus(column, words, mustRowsBeMarked(table.kind))
      : byFlag(column, pair)
  const entries = lines.slice(1).map(({ text }) => text.trim())
  return `state: { ${entries.join(', ')} }`
}

/** True if the column may hold the ERP's own workflow, which our words would break. */
const isWorkflow = (column: CatalogColumn, words: readonly string[]) =>
  isDynamicsStateColumn(column) ||
  (isStatusLikeName(column.name) &&
    isTextColumn(column) &&
    (words.length === 0 || findBusinessStatuses(column, words).length > 0))

/** Values of a flag before and after, the likeliest first. */
const pairs = [
  ['N', 'Y'],
  ['N', 'J'],
  ['0', '1'],
  ['F', 'T'],
  ['no', 'yes'],
  ['nein', 'ja'],
  ['false', 'true'],
] as const

/** The values of a flag as YAML; null if it is a status of several words. */
function findPair(column: CatalogColumn, words: readonly string[]): readonly [string, string] | null {
  if (column.type === 'boolean') return ['false', 'true']
  if (isNumberColumn(column)) return ['0', '1']
  const first = defaultTextOfColumn(column)
  const known = [...words, ...(first === null ? [] : [first])]
  const has = (value: string) => known.find((word) => word.toLowerCase() === value.toLowerCase())
  const found =
    pairs.find(([not, done]) => has(not) !== undefined && has(done) !== undefined) ??
    pairs.find((pair) => pair.some((value) => has(value) !== undefined)) ??
    (known.length === 0 && /\([1-3]\)$/.test(column.exactType) ? pairs[0] : undefined)
  if (found === undefined) return null
  const [not, done] = found.map((value) => has(value) ?? value)
  return [JSON.stringify(not), JSON.stringify(done)]
}

function byNothing(table: CatalogTable, rows: RowCount): StateChoice {
  const { name, isUpdatable, columns } = table
  const why = isUpdatable ? '' : ', and it cannot be written to'
  const flags = findFlagLikeColumns(columns).map((column) => column.name)
  const look = flags.length === 0 ? '' : `; look at: ${flags.join(', ')}`
  return {
    column: null,
    candidates: [],
    lines: [
      {
        text: 'state: none',
        comment: `the ledger remembers the captured rows; nothing is written here. ${capitalize(allSent(rows))}: see outboxd adopt --start now`,
      },
    ],
    warnings: [
      `no column of "${name}" looks like one that says whether a row was sent${look}${why}. So ${allSent(rows)}, unless a filter leaves it out. To leave the history alone, run \`outboxd adopt --start now\` (or id:N, since:D) before the first start`,
    ],
  }
}

/** Explains what `state: none` means for existing rows. */
function allSent(rows: RowCount): string {
  if (rows === null || rows.rows === 0) return 'every row there is sent'
  if (rows.rows === 1) return 'the row there is sent'
  const count = new Intl.NumberFormat('en-US').format(rows.rows)
  return `each of the ${rows.isEstimate ? 'some ' : ''}${count} rows there is sent`
}

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
