import { type AnsweredExchange, isRefusal, isSuccess } from '../exchange.ts'
import { CannotAsk, type Parts, type Sample } from '../question.ts'
import { amountAs, type RecordShape } from '../testRecord.ts'
import { acceptedShape, submissionSample, submit } from './submission.ts'

/** Where the service reads the client's fields of docs/interface.md, 2.5. */
export interface Mapped {
  /** The shape in which a record was taken first. */
  taken: RecordShape
  /** A record whose amount in data is none; null where none was sent. */
  wrongInData: AnsweredExchange | null
  /** A record whose amount beside data is none. */
  wrongBeside: AnsweredExchange | null
  /** A record without these fields. */
  without: AnsweredExchange | null
}

/** A field that nobody looks at is taken whatever it holds: so what is wrong on purpose tells where it is read. */
export const mappedSample: Sample<Mapped> = {
  name: 'records whose amount is none',
  requestsMax: 3,
  recordsMax: 3,
  samples: [submissionSample],
  async take(parts) {
    const taken = await acceptedShape(parts)
    if (taken.place === 'nowhere') return { taken, wrongInData: null, wrongBeside: null, without: null }
    const wrong = (place: RecordShape['place']) =>
      submit(parts, { ...taken, place }, `a wrong amount in ${place}`, { mapped: { total_amount: 'no amount' } })
    const wrongInData = taken.place === 'data' ? await wrong('data') : null
    const isReadInData = wrongInData !== null && isRefusal(wrongInData.answer)
    const wrongBeside = isReadInData ? null : await wrong('beside')
    const without = await submit(parts, { ...taken, place: 'nowhere' }, 'without the mapped fields')
    return { taken, wrongInData, wrongBeside, without }
  },
}

/** Where these fields are read; null where nowhere. Pure. */
export function placeRead({ wrongInData, wrongBeside }: Mapped): 'data' | 'beside' | null {
  if (wrongInData !== null && isRefusal(wrongInData.answer)) return 'data'
  return wrongBeside !== null && isRefusal(wrongBeside.answer) ? 'beside' : null
}

/** One record with an amount as a number, and one with the same as text, where amounts are read. */
export interface Amounts {
  place: 'data' | 'beside'
  number: AnsweredExchange
  text: AnsweredExchange
}

export const amountsSample: Sample<Amounts> = {
  name: 'an amount as a number and as text',
  requestsMax: 2,
  recordsMax: 2,
  samples: [mappedSample],
  async take(parts) {
    const place = placeRead(await parts.sample(mappedSample))
    if (place === null) throw new CannotAsk('the service looks at none of customer_id, order_date and total_amount')
    const as = (amount: RecordShape['amount']) => submit(parts, { place, amount }, `an amount as ${amount}`)
    return { place, number: await as('number'), text: await as('text') }
  },
}

/** The shape in which these fields are read and taken. @throws CannotAsk where there is none */
export async function readShape(parts: Parts): Promise<RecordShape> {
  const { place, number, text } = await parts.sample(amountsSample)
  if (isSuccess(number.answer)) return { place, amount: 'number' }
  if (isSuccess(text.answer)) return { place, amount: 'text' }
  throw new CannotAsk('neither an amount as a number nor one as text was taken')
}

export const amountIn = ({ amount }: RecordShape, digits: string) => ({
  mapped: { total_amount: amountAs(amount, digits) },
})
