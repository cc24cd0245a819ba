import { resources } from '../../resources.ts'
import { lineOf, nameOf, type Response, type Seen } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { follow, statusIn } from '../samples/life.ts'
import { acceptedShape, idIn, submissionSample, submit } from '../samples/submission.ts'

export const unknownCustomer: Question = {
  name: 'unknown-customer',
  section: '7.2',
  asks: 'what a record for a customer that the service does not know is answered (E001)',
  requestsMax: 4,
  recordsMax: 1,
  samples: [submissionSample],
  needs: ['customer', 'unknownCustomer'],
  harmless: false,
  async run(parts) {
    const shape = await acceptedShape(parts)
    const customerId = parts.given.unknownCustomer ?? ''
    const submitted = await submit(parts, shape, 'an unknown customer', { customerId })
    const id = idIn(submitted)
    if (id === null) return judgeUnknownCustomer(submitted.answer)
    const polls = await follow(parts, `${resources.data.path}/${encodeURIComponent(id)}`, [1_000, 4_000, 15_000])
    const last = polls.at(-1)
    return judgeTakenCustomer(
      submitted.answer,
      last === undefined ? null : statusIn(last),
      last?.answer ?? submitted.answer,
    )
  },
}

/** Pure. */
export function judgeUnknownCustomer(seen: Response): Finding {
  const assumed = '400 E001'
  const hasCode = seen.code === 'E001'
  const contract: Finding['contract'] = hasCode ? { e001: String(seen.status) } : {}
  const found = nameOf(seen)
  if (hasCode && seen.status === 400) return sure(found, lineOf(seen), { assumed, contract })
  return sure(found, lineOf(seen), { assumed, differs: true, contract, cannot: explainRefusal(seen.status, hasCode) })
}

function explainRefusal(status: number, hasCode: boolean): string | null {
  if (hasCode && status >= 400 && status < 500) return null
  if ([404, 405, 410].includes(status))
    return `${status} without E001 is taken for a service that is not there: everybody pauses, and the record is rejected after its third try`
  if (status >= 400 && status < 500)
    return 'the record is rejected, but without its code: list --code E001 does not find it'
  return `the record is retried or held in doubt, as after any ${status}`
}

/** It was taken, and asked for. Pure. */
export function judgeTakenCustomer(submitted: Seen, status: string | null, last: Seen): Finding {
  const why = `the record was taken (${lineOf(submitted)}); then ${lineOf(last)}`
  const assumed = '400 E001'
  if (last.kind === 'response' && /^failed$/i.test(status ?? '')) {
    const code = last.code ?? 'without a code'
    return sure(`taken, then failed ${code}`, why, { assumed, differs: true })
  }
  return sure('taken', why, {
    assumed,
    differs: true,
    advice: [
      'the service may not know that this customer is unknown, or not say so: ask whether --unknown-customer was one',
    ],
  })
}
