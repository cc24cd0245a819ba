import { isSuccess, nameOf, type Response } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { amountsSample, readShape } from '../samples/mapped.ts'
import { submit } from '../samples/submission.ts'

export const orderDate: Question = {
  name: 'order-date',
  section: '2.5',
  asks: 'whether order_date may have milliseconds, and which offsets',
  requestsMax: 3,
  recordsMax: 3,
  samples: [amountsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const shape = await readShape(parts)
    const withDate = async (date: string) =>
      (await submit(parts, shape, `the date ${date}`, { mapped: { order_date: date } })).answer
    return judgeOrderDate({
      milliseconds: await withDate('2026-01-02T03:04:05.678Z'),
      zero: await withDate('2026-01-02T03:04:05+00:00'),
      offset: await withDate('2026-01-02T03:04:05+01:00'),
    })
  },
}

/** Pure. */
export function judgeOrderDate({
  milliseconds,
  zero,
  offset,
}: Record<'milliseconds' | 'zero' | 'offset', Response>): Finding {
  const assumed = 'UTC with Z and the digits of the client’s fraction, as mappings send it'
  const why = `with milliseconds: ${nameOf(milliseconds)}; with +00:00: ${nameOf(zero)}; with +01:00: ${nameOf(offset)}`
  const offsets = isSuccess(offset) ? 'any offset' : isSuccess(zero) ? 'UTC' : 'Z alone'
  const takes = isSuccess(milliseconds)
  const found = `${takes ? 'milliseconds' : 'whole seconds'}, ${offsets}`
  if (takes) return sure(found, why, { assumed })
  return sure(found, why, {
    assumed,
    differs: true,
    cannot:
      'a date that the client writes with a fraction of a second is sent with it, and refused: have the ERP write whole seconds',
  })
}
