import type { State } from '../model.ts'
import { columnOf, columnSql, literalSql, literalsSql, nowSql, type TableShape } from './columns.ts'

/**
 * What a row's state column may be like. A new form is a member of this union, a row of `forms` below, and an entry in `stateEntries.ts`
 * that reads it from the file: tsc names each member that is missing.
 */
export type StateColumn =
  /** Values as text, null for NULL. `values`: what to write in which state; a state that is not there writes nothing. */
  | { kind: 'value'; column: string; waiting: readonly (string | null)[]; values: ReadonlyMap<State, string> }
  /** NULL waits; set to the time at these states. */
  | { kind: 'timestamp'; column: string; set: readonly State[] }

/** What follows from a form for all that is done with a row's state. Conditions are on the row, which has the alias o. */
export interface StateForm {
  readonly column: string
  /** True if a row says that it is taken as soon as it is; otherwise the ledger has to remember. */
  readonly isMarkedOnCapture: boolean
  /** What the column holds in a row that waits; null for NULL. */
  readonly waiting: readonly (string | null)[]
  /** Which rows wait. */
  readonly waitsSql: string
  /** What is written, for a trial: texts, or the time. None if the description has no word for what becomes of a row. */
  readonly writes: readonly string[] | 'time'
  /** True if something is written at this state. */
  isWrittenAt(state: State): boolean
  /** What is written, an expression that reads the state in `r.state`. */
  markSql(shape: TableShape): string
  /** Which rows may still be told something: what is completed or discarded stays so. */
  readonly openSql: string
  /** Which rows say that they are under way; null if none can. @param since follows a condition: only rows recorded since the ledger serves the table; null if rows do not say when */
  underWaySql(since: string | null): string | null
  /** True if each end has a value of its own, so that a row that says it is under way was not told its end. */
  readonly hasEndValues: boolean
  /** Which rows have a value that the description does not name; null if no row can. */
  unknownSql(shape: TableShape): string | null
}

/** Returns the form of a state column; null for `state: none`. */
export const formOf = (state: StateColumn | null): StateForm | null =>
  state && (forms[state.kind] as (state: StateColumn) => StateForm)(state)

const forms: { readonly [Kind in StateColumn['kind']]: (state: Extract<StateColumn, { kind: Kind }>) => StateForm } = {
  value: valueForm,
  timestamp: timestampForm,
}

const underWay: readonly State[] = ['queued', 'sending', 'accepted', 'uncertain', 'failed', 'rejected']
const isFinal = (state: State): boolean => state === 'completed' || state === 'discarded'

function valueForm({ column: name, waiting, values }: Extract<StateColumn, { kind: 'value' }>): StateForm {
  const now = columnSql(name)
  const texts = [...new Set(values.values())]
  const statesOf = (value: string) => [...values].flatMap(([state, each]) => (each === value ? [state] : []))
  const waitingTexts = waiting.filter((value) => value !== null)
  const finals = texts.filter((value) => statesOf(value).every(isFinal))
  return {
    column: name,
    isMarkedOnCapture: values.has('queued'),
    waiting,
    waitsSql: valuesSql(now, waiting),
    writes: texts,
    isWrittenAt: (state) => values.has(state),
    markSql() {
      const cases = [...values].map(([at, value]) => `when ${literalSql(at)} then ${literalSql(value)}`)
      return `case r.state ${cases.join(' ')} else ${now}::text end`
    },
    openSql: finals.length === 0 ? 'true' : `(${now} is null or ${now} not in (${literalsSql(finals)}))`,
    underWaySql(since) {
      const taken = new Set(underWay.flatMap((at) => values.get(at) ?? []))
      for (const at of ['completed', 'discarded'] as const) taken.delete(values.get(at) ?? '')
      if (taken.size === 0) return null
      const says = `${now} in (${literalsSql(taken)})`
      if (values.has('completed')) return says
      return since ? `${says}${since}` : null
    },
    hasEndValues: values.has('completed') && values.has('discarded'),
    unknownSql(shape) {
      if (values.size === 0 || columnOf(shape, name).baseType === 'boolean') return null
      const known = new Set([...waitingTexts, ...texts])
      const isNull = waiting.includes(null) ? 'false' : `${now} is null`
      return `(${isNull} or ${now} not in (${literalsSql(known)}))`
    },
  }
}

// Values of the file stand as literals, so that the planner can prove that a partial index on the waiting rows fits.
function valuesSql(now: string, waiting: readonly (string | null)[]): string {
  const values = waiting.filter((value) => value !== null)
  const isOne = values.length === 1 ? `= ${literalsSql(values)}` : `in (${literalsSql(values)})`
  const either = [
    ...(values.length > 0 ? [`${now} ${isOne}`] : []),
    ...(waiting.includes(null) ? [`${now} is null`] : []),
  ]
  return `(${either.join(' or ')})`
}

function timestampForm({ column: name, set }: Extract<StateColumn, { kind: 'timestamp' }>): StateForm {
  const now = columnSql(name)
  const isMarkedOnCapture = set.includes('queued')
  return {
    column: name,
    isMarkedOnCapture,
    waiting: [null],
    waitsSql: `${now} is null`,
    writes: 'time',
    isWrittenAt: (state) => set.includes(state),
    markSql: (shape) =>
      `case when r.state in (${literalsSql(set)}) then coalesce(${now}, ${nowSql(shape, name)}) else ${now} end`,
    openSql: 'true',
    underWaySql: (since) => (isMarkedOnCapture && since ? `${now} is not null${since}` : null),
    hasEndValues: false,
    unknownSql: () => null,
  }
}
