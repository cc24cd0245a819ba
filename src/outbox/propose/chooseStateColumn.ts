import type { State } from '../../model.ts'
import { quoteForYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import { type CatalogColumn, type CatalogTable, isTimeColumn } from './catalogTable.ts'
import {
  findSendingStatusColumn,
  findSentColumnCandidates,
  findStatusValue,
  findValuesNotAboutSending,
  isSentMarkColumn,
  isStatusName,
  knownValuesDefaultFirst,
} from './sentColumns.ts'

export interface StateChoice {
  /** Null if no column fits, or the user must choose. */
  readonly column: CatalogColumn | null
  readonly candidates: readonly CatalogColumn[]
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
}

const chosen = (column: CatalogColumn | null, lines: readonly YamlLine[], warnings: string[] = []): StateChoice => ({
  ...{ column, lines, warnings },
  candidates: [],
})

/**
 * Chooses the column that says whether a row waits: a time that is NULL until the row is sent, a flag, a status, or
 * none. If a column may be about goods, the user chooses, because a wrong choice sends rows again that another program
 * sent.
 * @param isOutbox true if the table was made to be read by a program like outboxd
 */
export function chooseStateColumn({ name, columns }: CatalogTable, isOutbox: boolean): StateChoice {
  const written = columns.filter(({ isGenerated }) => !isGenerated)
  const marks = written.filter((column) => isSentMarkColumn(column, isOutbox))
  const likely = findSentColumnCandidates(columns)
  const candidates = columns.filter((each) => marks.includes(each) || likely.includes(each))
  const [mark] = marks
  const isOnly = candidates.every((each) => each === mark || isStatusName(each.name))
  if (mark !== undefined && isOnly) return chosen(mark, isTimeColumn(mark) ? timeLines(mark) : flagLines(mark))
  const status = mark === undefined ? findSendingStatusColumn(written, isOutbox) : null
  if (status !== null) return byStatus(status)
  return candidates.length > 0 ? byUser(candidates) : byNothing(name, columns)
}

const timeLines = (column: CatalogColumn): YamlLine[] => [
  { text: 'state:' },
  { text: `  timestamp: ${quoteForYaml(column.name)}`, comment: 'NULL until outboxd writes a time' },
  {
    text: '  set: [completed]',
    comment: '[completed]: when the service is done; [queued]: when outboxd has taken the row',
  },
]

function flagLines(column: CatalogColumn): YamlLine[] {
  const [not, done] = column.type === 'boolean' ? ['false', 'true'] : ['0', '1']
  return [
    { text: 'state:' },
    { text: `  flag: ${quoteForYaml(column.name)}`, comment: column.exactType },
    { text: `  new: ${column.notNull ? not : `[${not}, null]`}`, comment: 'the row waits' },
    { text: `  done: ${done}` },
    { text: '  set: [queued]', comment: 'on capture' },
  ]
}

const meanings = {
  queued: 'on capture',
  completed: 'the service finished it',
  failed: 'the service said no',
  rejected: 'it does not map, or the service found its data invalid',
  uncertain: 'it may have arrived: it needs attention',
} as const satisfies Partial<Record<State, string>>
const states = Object.keys(meanings) as (keyof typeof meanings)[]

function byStatus(column: CatalogColumn): StateChoice {
  const business = findValuesNotAboutSending(column.knownValues ?? [])
  const warning = `"${column.name}" has words that may be about your business (${business.join(', ')}). If this is the ERP's own status, choose another column`
  return chosen(column, statusLines(column), business.length === 0 ? [] : [warning])
}

function statusLines(column: CatalogColumn): YamlLine[] {
  const { name, exactType, knownValues } = column
  const waiting = findStatusValue(knownValuesDefaultFirst(column), 'new')
  const seen =
    knownValues === null || knownValues.length === 0 ? '' : `; it has ${knownValues.map(quoteForYaml).join(', ')}`
  return [
    { text: 'state:' },
    { text: `  status: ${quoteForYaml(name)}`, comment: `${exactType}${seen}` },
    waiting === null
      ? {
          text: '  new: []',
          placeholder: '  new: FILL_IN',
          fillIn: `which values say that the row waits? null for NULL${seen}`,
        }
      : { text: `  new: ${quoteForYaml(waiting)}`, comment: 'the row waits' },
    ...states.flatMap((state) => {
      const word = wordFor(column, state, waiting)
      return word === null ? [] : [{ text: `  ${state}: ${quoteForYaml(word)}`, comment: meanings[state] }]
    }),
  ]
}

/** Chooses a value that the column has, or else the state's name if the column can hold it. */
function wordFor(
  { knownValues: known, isClosed, exactType }: CatalogColumn,
  state: keyof typeof meanings,
  waiting: string | null,
): string | null {
  const words = (known ?? []).filter((word) => word !== waiting)
  const theirs = findStatusValue(words, state)
  if (theirs !== null) return theirs
  if (isClosed) return state === 'rejected' ? findStatusValue(words, 'failed') : null
  const lengthMax = /^character(?: varying)?\((\d+)\)/.exec(exactType)?.[1]
  const fits = lengthMax === undefined || state.length <= Number(lengthMax)
  return fits && state !== waiting ? state : null
}

function byUser(candidates: readonly CatalogColumn[]): StateChoice {
  const shown = candidates.map(({ name, type, knownValues }) => {
    const has = knownValues === null || knownValues.length === 0 ? '' : `; it has ${knownValues.join(', ')}`
    return `${name} (${type}${has})`
  })
  const question = `does one of these say that a row was sent: ${shown.join(', ')}? Then take one of the forms below. With state: none, every row in the table is sent, see outboxd adopt --start now`
  return {
    ...{ column: null, candidates, warnings: [] },
    lines: [
      { text: 'state:', placeholder: 'state: none', fillIn: question },
      { text: '# state: { timestamp: COLUMN, set: [completed] }', comment: 'a time' },
      { text: '# state: { flag: COLUMN, new: false, done: true, set: [queued] }', comment: 'a flag' },
      {
        text: '# state: { status: COLUMN, new: WORD, queued: WORD, completed: WORD }',
        comment: 'words only about sending',
      },
      {
        text: '# state: none',
        comment: 'if outboxd must not write to the column. Every row is sent unless a filter excludes it',
      },
    ],
  }
}

function byNothing(table: string, columns: readonly CatalogColumn[]): StateChoice {
  const flags = columns.filter((each) => each.type === 'boolean' || (isTimeColumn(each) && !each.notNull))
  const look = flags.length === 0 ? '' : `; look at: ${flags.map(({ name }) => name).join(', ')}`
  const comment =
    'the ledger remembers the captured rows, and outboxd does not write to the table. Every row in the table is sent: see outboxd adopt --start now'
  const warning = `no column of "${table}" looks like one that says whether a row was sent${look}. So every row in the table is sent, unless a filter leaves the row out. To send no old rows, run \`outboxd adopt --start now\` (or id:N, since:D) before the first start`
  return chosen(null, [{ text: 'state: none', comment }], [warning])
}
