import { normalizeName } from '../../mapping/usualNames.ts'
import type { CatalogColumn } from './catalogTable.ts'
import { columnNames, findMatchingValue, isNameAboutSending, isStatusLikeName, statusValues } from './columnNames.ts'

/** The few words of a column in existing rows; null if there are many. */
export type ValuesOfColumn = (column: string) => readonly string[] | null

export const isTimeColumn = ({ type }: CatalogColumn) => /^(timestamp with(out)? time zone|date)$/.test(type)
export const isNumberColumn = ({ type }: CatalogColumn) => /^(smallint|integer|bigint|numeric)$/.test(type)
export const isTextColumn = ({ type }: CatalogColumn) => /^(text|character varying|character|citext)$/.test(type)
const isWord = (column: CatalogColumn) => isTextColumn(column) || column.allowed !== null

/** Finds columns that may say whether a row was sent, by name or values. Only the user knows which do. */
export function findSentColumnCandidates(columns: readonly CatalogColumn[], valuesOf: ValuesOfColumn): CatalogColumn[] {
  return columns.filter((column) => {
    if (isTimeColumn(column)) return !column.notNull && isNameAboutSending(column.name)
    if (column.type === 'boolean') return isNameAboutSending(column.name)
    if (isNumberColumn(column)) return isNameAboutSending(column.name) || isStatusLikeName(column.name)
    return isWord(column) && !isOfAnotherUse(column) && wordsTellOfSending(column, valuesOf(column.name))
  })
}

export function findFlagLikeColumns(columns: readonly CatalogColumn[]): CatalogColumn[] {
  return columns.filter(
    (column) =>
      column.type === 'boolean' ||
      (isTimeColumn(column) && !column.notNull) ||
      /^character(?: varying)?\(1\)$/.test(column.exactType) ||
      (column.allowed !== null && !isOfAnotherUse(column)),
  )
}

export function findSentStatusCandidates(columns: readonly CatalogColumn[], isReadingCheap: boolean): CatalogColumn[] {
  const isNamed = ({ name }: CatalogColumn) => isNameAboutSending(name) || isStatusLikeName(name)
  return columns.filter((column) =>
    isTextColumn(column)
      ? !isOfAnotherUse(column) && (isReadingCheap || isNamed(column))
      : isNumberColumn(column) && isNamed(column),
  )
}

const isOfAnotherUse = ({ name }: CatalogColumn) =>
  [...columnNames.type, ...columnNames.key, ...columnNames.payload].some((known) => known === normalizeName(name))

const knownWords = Object.values(statusValues).flat()
const sentWords = [...statusValues.queued, ...statusValues.completed]

const flagWordMax = 12

function wordsTellOfSending(column: CatalogColumn, looked: readonly string[] | null): boolean {
  const words = column.allowed ?? looked
  if (words === null) return false
  if (findMatchingValue(words, sentWords) !== null) return true
  if (isStatusLikeName(column.name)) return findBusinessStatuses(column, words).length === 0
  return isNameAboutSending(column.name) && words.every((word) => word.length <= flagWordMax)
}

/** Words about the business, such as draft and released. */
export function findBusinessStatuses(column: CatalogColumn, words: readonly string[]): string[] {
  const first = defaultTextOfColumn(column)
  return [...new Set([...words, ...(first === null ? [] : [first])])].filter(
    (word) => findMatchingValue([word], knownWords) === null,
  )
}

export const defaultTextOfColumn = (column: CatalogColumn): string | null =>
  /^'((?:[^']|'')*)'/.exec(column.default ?? '')?.[1]?.replaceAll("''", "'") ?? null

/** Dynamics counts the states of its workflow. */
export const isDynamicsStateColumn = ({ name }: CatalogColumn) => /^(statecode|statuscode)$/.test(normalizeName(name))

/** Finds the column of the ERP's own workflow (draft, confirmed), which outboxd reads and never writes. */
export function findWorkflowColumn(columns: readonly CatalogColumn[]): CatalogColumn | null {
  const all = columns.filter((each) => isStatusLikeName(each.name) && (isWord(each) || isDynamicsStateColumn(each)))
  return (
    all.find(({ name }) => /^(doc|order|beleg|auftrags)?(status|state|statecode)$/.test(normalizeName(name))) ??
    all[0] ??
    null
  )
}
