import { isRefusal, lineOf, nameOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Mapped, mappedSample, placeRead } from '../samples/mapped.ts'

export const mappedFields: Question = {
  name: 'mapped-fields',
  section: '2.5',
  asks: 'where customer_id, order_date and total_amount are read, and whether they must be there',
  requestsMax: 0,
  recordsMax: 0,
  samples: [mappedSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    return judgeMappedFields(await parts.sample(mappedSample))
  },
}

const assumed = 'in data, as mappings/data.yaml sends them'

/** Pure. */
export function judgeMappedFields(mapped: Mapped): Finding {
  if (mapped.taken.place === 'nowhere')
    return sure('refused', 'a record with these fields in data was refused, one without them was taken', {
      assumed,
      differs: true,
      advice: ['take customer_id, order_date and total_amount out of the mapping’s `body`; ask where they belong'],
    })
  const place = placeRead(mapped)
  const { without, wrongInData, wrongBeside } = mapped
  if (without === null) return unknown('a record without them was not answered', { assumed })
  const isRequired = isRefusal(without.answer)
  const why = [
    wrongInData && `a wrong amount in data: ${nameOf(wrongInData.answer)}`,
    wrongBeside && `beside data: ${nameOf(wrongBeside.answer)}`,
    `without them: ${lineOf(without.answer)}`,
  ]
  const said = why.filter((each) => each !== null).join('; ')
  if (place === null) {
    if (isRequired) return unknown(said, { assumed })
    return sure('ignored', said, {
      assumed,
      differs: true,
      advice: [
        'nobody looks at amount, date and customer_id where mappings/data.yaml puts them: ask where they belong',
      ],
    })
  }
  const found = `${place === 'data' ? 'in data' : 'beside data'}, ${isRequired ? 'required' : 'optional'}`
  if (place === 'data') return sure(found, said, { assumed })
  const advice = [
    'in the mapping’s `body`, put customer_id, order_date and total_amount beside data: within it, nobody looks at them',
  ]
  return sure(found, said, { assumed, differs: true, advice })
}
