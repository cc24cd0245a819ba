import { quoteYaml, type YamlLine } from '../../yaml/yamlLines.ts'
import { relationKindNames } from '../findTableProblems.ts'
import { type CatalogColumn, type CatalogTable, qualifiedTable } from './catalogTable.ts'
import { findColumnByName } from './columnNames.ts'

export interface IdChoice {
  readonly column: CatalogColumn | null
  /** @param other a column to try the rest with, if the user has to name the id */
  lines(other: string): readonly YamlLine[]
  readonly warnings: readonly string[]
}

/**
 * Chooses the column that identifies rows: unique and not null, by the catalog. If the catalog cannot show it, proposes
 * a likely column that the user confirms.
 */
export function chooseIdColumn(table: CatalogTable): IdChoice {
  const { columns, primaryKey, kind, hasHeirs } = table
  const certain = columns.filter((column) => column.isUnique && (column.notNull || kind === 'm'))
  const found =
    certain.find(({ name }) => primaryKey.length === 1 && name === primaryKey[0]) ??
    findColumnByName(certain, ['id', 'uuid', 'guid'], () => true) ??
    certain[0]
  const catalogCan = kind === 'r' && !hasHeirs
  if (found !== undefined && !hasHeirs) {
    const why = primaryKey.length === 1 && primaryKey[0] === found.name ? 'the primary key' : 'unique and not null'
    return {
      column: found,
      warnings: [],
      lines: () => [{ text: `id: ${quoteYaml(found.name)}`, comment: `${found.type}, ${why}` }],
    }
  }
  const likely =
    found ?? findColumnByName(columns, ['id', 'uuid', 'guid'], () => true) ?? columns.find(({ isDrawn }) => isDrawn)
  if (!catalogCan)
    return {
      column: likely ?? null,
      warnings: [
        `"${table.name}" is ${kindName(table)}: no index can show that an id is unique. If you are sure, write id_unique: promised. Of two rows with one id, the second would never be sent`,
      ],
      lines: (other) => [
        likely === undefined
          ? {
              text: 'id:',
              trial: `id: ${quoteYaml(other)}`,
              fillIn: `the column that identifies a row for ever, one of ${namesOf(columns)}`,
            }
          : { text: `id: ${quoteYaml(likely.name)}`, comment: likely.type },
        {
          text: 'id_unique:',
          trial: 'id_unique: promised',
          fillIn: 'promised, if no two rows can ever have one id',
        },
      ],
    }
  const nullable = columns.find((column) => column.isUnique)
  return {
    column: null,
    warnings: [noIdWarning(table, nullable)],
    lines: (other) => [
      {
        text: 'id:',
        trial: `id: ${quoteYaml(other)}`,
        fillIn: 'the column that identifies a row for ever: unique, and not null (see the warning)',
      },
    ],
  }
}

function noIdWarning(table: CatalogTable, nullable: CatalogColumn | undefined): string {
  const { name, primaryKey } = table
  const qualified = qualifiedTable(table)
  if (nullable !== undefined)
    return `"${name}" has no column that is unique and not null: "${nullable.name}" allows NULL: alter table ${qualified} alter "${nullable.name}" set not null`
  const add = `alter table ${qualified} add column outbox_id bigint generated always as identity unique (it rewrites the table, locked)`
  return primaryKey.length > 1
    ? `the primary key of "${name}" is of ${primaryKey.length} columns (${primaryKey.join(', ')}), and an id is one: ${add}`
    : `"${name}" has no unique column, and two rows of one id would count as one: ${add}`
}

function kindName({ kind, hasHeirs }: CatalogTable): string {
  if (hasHeirs) return 'a table that others inherit from'
  return kind === 'p' ? 'partitioned by another column' : (relationKindNames[kind] ?? 'no table')
}

const namesOf = (columns: readonly CatalogColumn[]) => columns.map(({ name }) => name).join(', ')
