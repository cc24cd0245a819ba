import type { FilterOptions } from '../../cli/filters.ts'
import { wholeId } from '../../cli/references.ts'
import type { BulkChange } from '../../operations/bulkChange.ts'
import { discardChange } from '../../operations/discard.ts'
import { type ReplayTerms, replayChange } from '../../operations/replay.ts'
import { rowsMax } from '../records/readRecords.ts'
import { type Fields, readRecordsQuery } from '../records/recordsQuery.ts'

/** What a form asks to have done, and to which records. */
export interface ChangeRequest {
  verb: BulkChange['verb']
  terms: ReplayTerms
  /** Those that were ticked; none: all that the filters match. */
  ids: readonly string[]
  filters: FilterOptions
}

/** What came of reading a form. */
export type ChangeRequestRead = { kind: 'value'; request: ChangeRequest } | { kind: 'invalid'; problem: string }

/**
 * Reads a form of a list: `do` is `replay-ticked`, `replay-all`, `discard-ticked` or `discard-all`, `id` those that are ticked,
 * the rest the filters of the list and the terms of a replay. Pure.
 */
export function readChangeRequest(fields: Fields): ChangeRequestRead {
  const [, verb, scope] = /^(replay|discard)-(ticked|all)$/.exec([fields.do ?? ''].flat()[0] ?? '') ?? []
  if (verb !== 'replay' && verb !== 'discard') return { kind: 'invalid', problem: 'The form does not say what to do.' }
  const ids = scope === 'ticked' ? [...new Set([fields.id ?? []].flat())] : []
  if (scope === 'ticked' && ids.length === 0)
    return { kind: 'invalid', problem: 'No record was ticked: tick those that it is for, or choose all that match.' }
  if (ids.length > rowsMax || !ids.every((id) => wholeId.test(id)))
    return {
      kind: 'invalid',
      problem: `The form ticks at most ${rowsMax} records, each by its id: choose all that match instead.`,
    }
  // Of the list its limit is the length of a page.
  const { limit: _, ...filters } = scope === 'all' ? readRecordsQuery(fields).filters : {}
  return { kind: 'value', request: { verb, terms: readTerms(fields), ids, filters } }
}

/** The ticks of a replay's terms. Pure. */
export function readTerms(fields: Fields): ReplayTerms {
  const isOn = (name: string) => fields[name] !== undefined
  return { refresh: isOn('refresh'), evenIfArrived: isOn('even-if-arrived'), newKey: isOn('new-key') }
}

/** The rules of what is asked for. Pure. */
export const changeOf = ({ verb, terms }: ChangeRequest): BulkChange =>
  verb === 'replay' ? replayChange(terms) : discardChange
