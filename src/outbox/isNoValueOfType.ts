import { codeOf } from '../postgres/sqlState.ts'

/** What was asked for cannot be an id of this table at all: a word for a bigint, a number for a uuid. */
export function isNoValueOfType(error: unknown): boolean {
  return ['22P02', '22003', '22007', '22008', '22023'].includes(String(codeOf(error)))
}
