import { resources } from '../../resources.ts'
import { submittedId } from '../../service/responses.ts'
import { type AnsweredExchange, type Exchange, isSuccess, jsonOf, lineOf } from '../exchange.ts'
import { CannotAsk, type Parts, type Sample } from '../question.ts'
import { noteOf, type RecordChange, type RecordShape, shapes, testRecord } from '../testRecord.ts'
import { firstCallSample } from './firstCall.ts'

/** How the service took a test record, or did not. */
export interface SubmissionTaken {
  /** The shape in which the service took it; null where it took none. */
  shape: RecordShape | null
  /** All that were tried; the last is the one that was taken. */
  tried: readonly AnsweredExchange[]
}

/** A test record, in the shape in which the service takes it (docs/interface.md, 4.2). */
export const submissionSample: Sample<SubmissionTaken> = {
  name: 'a test record',
  requestsMax: shapes.length,
  recordsMax: 1,
  samples: [firstCallSample],
  async take(parts) {
    const tried: AnsweredExchange[] = []
    for (const shape of shapes) {
      const exchange = await submit(parts, shape, 'a record')
      tried.push(exchange)
      if (isSuccess(exchange.answer)) return { shape, tried }
      // Another shape helps only where the shape is what was refused.
      if (![400, 422].includes(exchange.answer.status)) break
      if (exchange.answer.code === 'E001') break
    }
    return { shape: null, tried }
  },
}

/** Sends a test record. */
export function submit(
  parts: Parts,
  shape: RecordShape,
  what: string,
  { headers = {}, ...change }: RecordChange & { headers?: Readonly<Record<string, string>> } = {},
): Promise<AnsweredExchange> {
  const body = testRecord(shape, parts.given.customer ?? '', noteOf(parts, what), change)
  return parts.post(resources.data.path, body, { headers })
}

/** The id that an answer gives a test record, as the daemon would read it. */
export const idIn = ({ answer }: Exchange): string | null =>
  isSuccess(answer) ? submittedId('data', jsonOf(answer)) : null

/** The shape in which records are taken. @throws CannotAsk where none is */
export async function acceptedShape(parts: Parts): Promise<RecordShape> {
  const { shape, tried } = await parts.sample(submissionSample)
  if (shape === null) throw new CannotAsk(`no test record was taken: ${lineOf(lastOf(tried).answer)}`)
  return shape
}

/** The record that was taken. @throws CannotAsk where none is, or where it has no id */
export async function acceptedRecord(parts: Parts): Promise<{ exchange: AnsweredExchange; id: string }> {
  await acceptedShape(parts)
  const exchange = lastOf((await parts.sample(submissionSample)).tried)
  const id = idIn(exchange)
  if (id === null)
    throw new CannotAsk(`the answer to a test record has no ${resources.data.idField}: ${lineOf(exchange.answer)}`)
  return { exchange, id }
}

function lastOf(tried: readonly AnsweredExchange[]): AnsweredExchange {
  const last = tried.at(-1)
  if (last === undefined) throw new CannotAsk('no test record was sent')
  return last
}
