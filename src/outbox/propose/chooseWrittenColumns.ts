import { quoteYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import type { CatalogColumn, CatalogTable } from './catalogTable.ts'
import type { StateChoice } from './chooseStateColumn.ts'
import { columnNames, findColumnByName, isErrorColumnName, isGivenUpName } from './columnNames.ts'
import { isTextColumn } from './findSentColumnCandidates.ts'

export interface WriteChoice {
  readonly columns: readonly string[]
  readonly lines: readonly YamlLine[]
  readonly warnings: readonly string[]
}

export function chooseWrittenColumns(table: CatalogTable, isOutbox: boolean, state: StateChoice): WriteChoice {
  const free = table.columns.filter((column) => column !== state.column && !column.isGenerated)
  if (!table.isUpdatable) return { columns: [], lines: [], warnings: [] }
  const transactionId = findColumnByName(
    free,
    isOutbox ? columnNames.transactionId : ['servicetransactionid', 'synctransactionid'],
    () => true,
  )
  const wanted: [CatalogColumn | null | undefined, string, string][] = [
    [transactionId, 'transaction_id', 'by which the service knows it'],
    [free.find(({ name }) => isErrorColumnName(name, isOutbox, 'code')), 'error_code', 'E001 and the like'],
    [free.find(({ name }) => isErrorColumnName(name, isOutbox, 'text')), 'error', 'why it failed; cut to fit'],
  ]
  const fitting = wanted.flatMap(([column, what, comment]) =>
    column !== null && column !== undefined && isTextColumn(column) && !column.notNull
      ? [{ column, what, comment }]
      : [],
  )
  const warnings = wanted.flatMap(([column, what]) =>
    column === null || column === undefined || (isTextColumn(column) && !column.notNull)
      ? []
      : [notWritten(column, what)],
  )
  const givenUp = isOutbox && state.column !== null ? free.find(isGivenUpTime) : undefined
  const updated =
    isOutbox && state.lines.some(({ text }) => text.startsWith('  status:'))
      ? findColumnByName(free, columnNames.updatedAt, ({ type }) => /^timestamp/.test(type))
      : null
  const times = [
    ...(givenUp
      ? [{ column: givenUp, what: '{ what: now, on: [failed, rejected, discarded] }', comment: 'given up' }]
      : []),
    ...(updated ? [{ column: updated, what: 'now', comment: 'the last write' }] : []),
  ]
  const all = [...fitting, ...times]
  const lines = all.map(({ column, what, comment }) => ({ text: `  ${quoteYaml(column.name)}: ${what}`, comment }))
  return {
    columns: all.map(({ column }) => column.name),
    warnings,
    lines: all.length > 0 ? [{ text: 'write:' }, ...lines] : [noWrites],
  }
}

const noWrites: YamlLine = {
  text: '',
  comment:
    'write: columns for transaction_id, error_code and error. None of the columns looks like one, so the table does not show why a record failed.',
}

function notWritten({ name, exactType, notNull }: CatalogColumn, what: string): string {
  const why = notNull ? 'it must not be NULL, and outboxd empties it' : `it is ${exactType}, and outboxd writes text`
  return `"${name}" could take ${what}, but ${why}: the proposal leaves it out`
}

export const isGivenUpTime = (column: CatalogColumn) =>
  isGivenUpName(column.name) && !column.notNull && /^timestamp/.test(column.type)
