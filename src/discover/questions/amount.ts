import { isSuccess, lineOf, nameOf, type Seen } from '../exchange.ts'
import { type Finding, notAsked, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { acceptedShape, submissionSample, submit } from '../samples/submission.ts'

export const amount: Question = {
  name: 'amount',
  section: '2.5',
  asks: 'whether total_amount is a number or its digits as a string, and whether a third decimal is refused',
  requestsMax: 2,
  recordsMax: 2,
  samples: [submissionSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const shape = await acceptedShape(parts)
    if (!shape.startsWith('in data')) return notAsked('the service takes no total_amount in data')
    const asNumber = shape === 'in data'
    const asText = asNumber
      ? (await submit(parts, shape, 'an amount as text', { data: { total_amount: '12.30' } })).answer
      : null
    const third = asNumber ? JSON.rawJSON('12.345') : '12.345'
    const thirdDecimal = await submit(parts, shape, 'an amount of three decimals', { data: { total_amount: third } })
    return judgeAmount({ asText, thirdDecimal: thirdDecimal.answer })
  },
}

interface Amounts {
  /** Null where a number was refused, and text was taken. */
  asText: Seen | null
  thirdDecimal: Seen
}

/** Pure. */
export function judgeAmount({ asText, thirdDecimal }: Amounts): Finding {
  const assumed = 'a number, as mappings/data.yaml sends it'
  const checked = isSuccess(thirdDecimal)
    ? 'an amount of three decimals is taken, so amounts are not checked: what rounds it then is not shown'
    : `an amount of three decimals is answered ${nameOf(thirdDecimal)}`
  if (asText === null)
    return sure('text', `a number was refused, its digits as text were taken; ${checked}`, {
      assumed,
      differs: true,
      advice: ['in the mapping, give total_amount `as: string`'],
    })
  if (asText.kind === 'no-answer') return unknown(lineOf(asText), { assumed })
  return isSuccess(asText)
    ? sure('number or text', `both were taken; ${checked}`, { assumed })
    : sure('number', `text was answered ${lineOf(asText)}; ${checked}`, { assumed })
}
