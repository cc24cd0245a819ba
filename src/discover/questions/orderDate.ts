import { isSuccess, lineOf, type Seen } from '../exchange.ts'
import { type Finding, notAsked, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { acceptedShape, submissionSample, submit } from '../samples/submission.ts'

export const orderDate: Question = {
  name: 'order-date',
  section: '2.5',
  asks: 'whether order_date may have milliseconds, or an offset',
  requestsMax: 2,
  recordsMax: 2,
  samples: [submissionSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const shape = await acceptedShape(parts)
    if (!shape.startsWith('in data')) return notAsked('the service takes no order_date in data')
    const withDate = async (date: string) =>
      (await submit(parts, shape, `a date as ${date}`, { data: { order_date: date } })).answer
    return judgeOrderDate(await withDate('2026-01-02T03:04:05.678Z'), await withDate('2026-01-02T03:04:05+01:00'))
  },
}

/** Pure. */
export function judgeOrderDate(milliseconds: Seen, offset: Seen): Finding {
  const assumed = 'UTC with Z and the digits of the client’s fraction, as mappings send it'
  if (milliseconds.kind === 'no-answer') return unknown(lineOf(milliseconds), { assumed })
  const takes = isSuccess(milliseconds)
  const found = `${takes ? 'milliseconds' : 'whole seconds'}, ${isSuccess(offset) ? 'any offset' : 'UTC alone'}`
  const why = `with milliseconds: ${lineOf(milliseconds)}; with an offset: ${lineOf(offset)}`
  if (takes) return sure(found, why, { assumed })
  return sure(found, why, {
    assumed,
    differs: true,
    cannot:
      'a date that the client writes with a fraction of a second is sent with it, and refused: have the ERP write whole seconds',
  })
}
