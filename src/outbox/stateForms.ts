import { isFinalState, type State } from '../model/submission.ts'
import { columnOf, literalListSql, literalSql, nowForColumnSql, prefixedColumnSql, type TableShape } from './columns.ts'

/** The forms of a state column. A new form needs a member here, a row of `forms`, and an entry in `stateEntries.ts`. */
export type StateColumn =
  /** `values`: the value to write at each state. At a missing state nothing is written. */
  | { kind: 'value'; column: string; waiting: readonly (string | null)[]; values: ReadonlyMap<State, string> }
  /** NULL means waiting. The time is written at the states in `set`. */
  | { kind: 'timestamp'; column: string; set: readonly State[] }

/** The SQL that a state column's form adds to statements. Rows have the alias o. */
interface StateExpressions {
  readonly column: string
  readonly isMarkedOnCapture: boolean
  readonly waiting: readonly (string | null)[]
  readonly waitsSql: string
  /** The values that outboxd may write. */
  readonly writes: readonly string[] | 'time'
  isWrittenAt(state: State): boolean
  /** @param timezone of the table's times without a time zone */
  markSql(shape: TableShape, timezone: string): string
  /** The condition that an outcome may still be written: the row does not say completed. A discarded record may be replayed. */
  readonly openSql: string
  /**
   * The condition that a row is under way: it was captured, and its end is not written. Null if no row shows this.
   *
   * @param since the condition that the ledger served the table when the row was created
   */
  underWaySql(since: string | null): string | null
  readonly hasEndValues: boolean
  /** The condition that `outbox.yaml` does not name the row's value; null if it names all possible values. */
  unknownSql(shape: TableShape): string | null
}

export const stateExpressions = (state: StateColumn | null): StateExpressions | null =>
  state && (forms[state.kind] as (state: StateColumn) => StateExpressions)(state)

const forms: {
  readonly [Kind in StateColumn['kind']]: (state: Extract<StateColumn, { kind: Kind }>) => StateExpressions
} = {
  value: valueForm,
  timestamp: timestampForm,
}

/** The condition that a row waits, if `columnSql` is its state column. */
export const waitsSql = (state: StateColumn, columnSql: string): string =>
  state.kind === 'timestamp' ? `${columnSql} is null` : valuesSql(columnSql, state.waiting)

const underWay: readonly State[] = ['queued', 'sending', 'accepted', 'uncertain', 'failed', 'rejected']

function valueForm(state: Extract<StateColumn, { kind: 'value' }>): StateExpressions {
  const { column: name, waiting, values } = state
  const now = prefixedColumnSql(name)
  const texts = [...new Set(values.values())]
  const statesOf = (value: string) => [...values].flatMap(([state, each]) => (each === value ? [state] : []))
  const waitingTexts = waiting.filter((value) => value !== null)
  const closed = texts.filter((value) => statesOf(value).includes('completed') && statesOf(value).every(isFinalState))
  return {
    column: name,
    isMarkedOnCapture: values.has('queued'),
    waiting,
    waitsSql: waitsSql(state, now),
    writes: texts,
    isWrittenAt: (state) => values.has(state),
    markSql() {
      const cases = [...values].map(([at, value]) => `when ${literalSql(at)} then ${literalSql(value)}`)
      return `case r.state ${cases.join(' ')} else ${now}::text end`
    },
    openSql: closed.length === 0 ? 'true' : `(${now} is null or ${now} not in (${literalListSql(closed)}))`,
    underWaySql(since) {
      const taken = new Set(underWay.flatMap((at) => values.get(at) ?? []))
      const ends = new Set((['completed', 'discarded'] as const).flatMap((at) => values.get(at) ?? []))
      const marks = new Set((['queued', 'sending', 'accepted'] as const).flatMap((at) => values.get(at) ?? []))
      const sharedMarks = values.has('queued') ? marks.intersection(ends) : new Set<string>()
      const says = (texts: ReadonlySet<string>, from: string | null) =>
        texts.size === 0 || from === null ? [] : [`${now} in (${literalListSql(texts)})${from}`]
      const either = [
        ...says(taken.difference(ends), values.has('completed') ? '' : since),
        ...says(sharedMarks, since),
      ]
      return either.length === 0 ? null : `(${either.join(' or ')})`
    },
    hasEndValues: values.has('completed') && values.has('discarded'),
    unknownSql(shape) {
      const isBoolean = columnOf(shape, name).baseType === 'boolean'
      const either = [
        ...(waiting.includes(null) ? [] : [`${now} is null`]),
        ...(isBoolean ? [] : [`${now} not in (${literalListSql(new Set([...waitingTexts, ...texts]))})`]),
      ]
      return values.size === 0 || either.length === 0 ? null : `(${either.join(' or ')})`
    },
  }
}

// Writes literals, so that the planner can use a partial index on the waiting rows.
function valuesSql(columnSql: string, waiting: readonly (string | null)[]): string {
  const values = waiting.filter((value) => value !== null)
  const isOne = values.length === 1 ? `= ${literalListSql(values)}` : `in (${literalListSql(values)})`
  const either = [
    ...(values.length > 0 ? [`${columnSql} ${isOne}`] : []),
    ...(waiting.includes(null) ? [`${columnSql} is null`] : []),
  ]
  return `(${either.join(' or ')})`
}

function timestampForm(state: Extract<StateColumn, { kind: 'timestamp' }>): StateExpressions {
  const { column: name, set } = state
  const now = prefixedColumnSql(name)
  const isMarkedOnCapture = set.includes('queued')
  return {
    column: name,
    isMarkedOnCapture,
    waiting: [null],
    waitsSql: waitsSql(state, now),
    writes: 'time',
    isWrittenAt: (state) => set.includes(state),
    markSql: (shape, timezone) =>
      `case when r.state in (${literalListSql(set)}) then coalesce(${now}, ${nowForColumnSql(shape, name, timezone)}) else ${now} end`,
    openSql: 'true',
    underWaySql: (since) => (isMarkedOnCapture && since ? `${now} is not null${since}` : null),
    hasEndValues: false,
    unknownSql: () => null,
  }
}
