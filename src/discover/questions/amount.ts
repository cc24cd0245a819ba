import { type AnsweredExchange, isSuccess, lineOf, nameOf } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { type Amounts, amountIn, amountsSample, readShape } from '../samples/mapped.ts'
import { submit } from '../samples/submission.ts'

export const amount: Question = {
  name: 'amount',
  section: '2.5',
  asks: 'whether total_amount is a number or its digits as text, and whether a third decimal is refused',
  requestsMax: 1,
  recordsMax: 1,
  samples: [amountsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const amounts = await parts.sample(amountsSample)
    const shape = await readShape(parts)
    return judgeAmount(amounts, await submit(parts, shape, 'an amount of three decimals', amountIn(shape, '12.345')))
  },
}

/** Pure. */
export function judgeAmount(
  { number, text }: Pick<Amounts, 'number' | 'text'>,
  thirdDecimal: AnsweredExchange,
): Finding {
  const assumed = 'a number, as mappings/data.yaml sends it'
  const checked = isSuccess(thirdDecimal.answer)
    ? 'one of three decimals is taken: what rounds it then is not shown'
    : `one of three decimals is answered ${nameOf(thirdDecimal.answer)}`
  const why = `a number: ${lineOf(number.answer)}; text: ${lineOf(text.answer)}; ${checked}`
  if (isSuccess(number.answer)) return sure(isSuccess(text.answer) ? 'number or text' : 'number', why, { assumed })
  return sure('text', why, { assumed, differs: true, advice: ['in the mapping, give total_amount `as: string`'] })
}
