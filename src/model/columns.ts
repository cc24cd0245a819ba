/** What a column may hold. */
interface Held {
  count: number
  flag: boolean
  uuid: string
  text: string | null
  /** Milliseconds. */
  ms: number | null
}

/**
 * How long a column's value lasts. `step`: it is the last step's own, and empty where that step says nothing of it.
 * `transaction`: until another transaction is begun for the record. `start`: until an operator has it sent anew.
 * `submission`: for good. A step leaves what lasts longer than itself as it is, unless it says otherwise.
 */
export type Lasting = 'step' | 'transaction' | 'start' | 'submission'

interface Column {
  holds: keyof Held
  lasts: Lasting
}

/**
 * The columns of a submission in which its steps keep what they have to know of each other, by their names in camel case.
 *
 * The types below follow from this table, and so do the reading, the writing and the forgetting of the ledger
 * (src/ledger/submissions.ts): a new column is named in its migration, here, and where it is used.
 */
export const columns = {
  /** Sent with every attempt; the service may know the record by it. */
  idempotencyKey: { holds: 'uuid', lasts: 'submission' },
  /** An attempt before the next one may have arrived. */
  inDoubt: { holds: 'flag', lasts: 'submission' },
  /** The transactionId or orderId; while probing, the one that the body carries. */
  transactionId: { holds: 'text', lasts: 'submission' },
  /** Answers 500. */
  serverErrors: { holds: 'count', lasts: 'start' },
  /** Idempotency keys renewed after E002. */
  renewedKeys: { holds: 'count', lasts: 'start' },
  /** How often it was submitted again after its transaction had failed. */
  resubmissions: { holds: 'count', lasts: 'start' },
  /** The last request was refused with a 401, and is repeated with a new token. */
  repeatedAfter401: { holds: 'flag', lasts: 'transaction' },
  polls: { holds: 'count', lasts: 'transaction' },
  /** Polls in a row that brought no usable answer. */
  fruitless: { holds: 'count', lasts: 'transaction' },
  /** The age at which it was last seen unfinished. */
  notDoneMs: { holds: 'ms', lasts: 'transaction' },
  /** The age at which it was first seen finished. */
  doneMs: { holds: 'ms', lasts: 'step' },
  errorCode: { holds: 'text', lasts: 'step' },
  /** For the operator: why it is where it is. */
  error: { holds: 'text', lasts: 'step' },
  /** JSON text, the service's digits. */
  result: { holds: 'text', lasts: 'step' },
  /** It ended failed or rejected, and yet the service may have it. */
  mayHaveArrived: { holds: 'flag', lasts: 'step' },
  /** Its next poll is one of those that get a small share of the slots: it is long past its time. */
  polledRarely: { holds: 'flag', lasts: 'step' },
} as const satisfies Record<string, Column>

type Columns = typeof columns
export type ColumnName = keyof Columns
type NameOf<L extends Lasting> = { [N in ColumnName]: Columns[N]['lasts'] extends L ? N : never }[ColumnName]
type Values = { -readonly [N in keyof Columns]: Held[Columns[N]['holds']] }

/** What is handed from one step to the next. */
export type Remembered = Pick<Values, NameOf<Exclude<Lasting, 'step'>>>
/** What the last step alone has to say. */
export type OfStep = Pick<Values, NameOf<'step'>>
