import { isSuccess, lineOf, type Seen } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { acceptedShape, submissionSample, submit } from '../samples/submission.ts'
import type { RecordShape } from '../testRecord.ts'

export const mappedFields: Question = {
  name: 'mapped-fields',
  section: '2.5',
  asks: 'whether customer_id, order_date and total_amount may or must stand in data, or elsewhere',
  requestsMax: 1,
  recordsMax: 1,
  samples: [submissionSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const shape = await acceptedShape(parts)
    const without = shape === 'nowhere' ? null : await submit(parts, 'nowhere', 'without the mapped fields')
    return judgeMappedFields(shape, without?.answer ?? null)
  },
}

/**
 * @param shape the one in which a record was taken
 * @param without the answer to a record without these fields; null where that is the shape. Pure
 */
export function judgeMappedFields(shape: RecordShape, without: Seen | null): Finding {
  const assumed = 'in data, as mappings/data.yaml sends them'
  if (shape === 'nowhere')
    return sure('refused in data', 'a record with these fields in data was refused, one without them was taken', {
      assumed,
      differs: true,
      advice: [
        'take customer_id, order_date and total_amount out of `body: data:` of the mapping; ask where they belong',
      ],
    })
  if (shape === 'beside data')
    return sure(
      'beside data',
      'a record was taken with these fields beside data, and not with them in it, nor without them',
      {
        assumed,
        differs: true,
        advice: ['in the mapping’s `body`, put customer_id, order_date and total_amount beside data'],
      },
    )
  if (without === null || without.kind === 'no-answer')
    return unknown('a record without them was not answered', { assumed })
  return isSuccess(without)
    ? sure('optional in data', 'a record was taken with these fields in data, and without them', { assumed })
    : sure('required in data', `a record without them was answered ${lineOf(without)}`, { assumed })
}
