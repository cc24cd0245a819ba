import { isSuccess, lineOf, nameOf, type Response } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { lengthsSample } from '../samples/lengths.ts'

export const customerLength: Question = {
  name: 'customer-length',
  section: '2.2',
  asks: 'how the ten characters of a customerId are counted: as characters, bytes or UTF-16 units',
  requestsMax: 0,
  recordsMax: 0,
  samples: [lengthsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const { ten, eleven, bytes, halves } = await parts.sample(lengthsSample)
    return judgeCustomerLength({ ten: ten.answer, eleven: eleven.answer, bytes: bytes.answer, halves: halves.answer })
  },
}

export type LengthAnswers = Record<'ten' | 'eleven' | 'bytes' | 'halves', Response>

/** Pure. */
export function judgeCustomerLength({ ten, eleven, bytes, halves }: LengthAnswers): Finding {
  const assumed = 'characters, as `maxLength` of a mapping counts'
  const why = `10: ${nameOf(ten)}, 11: ${nameOf(eleven)}, 10 of two bytes: ${nameOf(bytes)}, 10 of two halves: ${nameOf(halves)}`
  const fits = (seen: Response) => readLength(seen, ten)
  if (fits(ten) !== 'fits') return unknown(`10 characters were answered ${lineOf(ten)}`, { assumed })
  if (fits(eleven) === 'unclear') return unknown(`${why}: that does not tell the length from the customer`, { assumed })
  if (fits(eleven) === 'fits')
    return sure('not limited', why, {
      assumed,
      differs: true,
      advice: ['the service takes longer ids than the interface says: keep to 10 all the same'],
    })
  if (fits(bytes) === 'too long')
    return sure('bytes', why, {
      assumed,
      differs: true,
      cannot:
        'a mapping counts characters: a customerId with letters beyond ASCII may be refused by the service though it maps',
    })
  if (fits(halves) === 'too long')
    return sure('UTF-16 units', why, {
      assumed,
      differs: true,
      cannot:
        'a mapping counts characters: a customerId with emoji or the like may be refused by the service though it maps',
    })
  return fits(bytes) === 'fits' && fits(halves) === 'fits'
    ? sure('characters', why, { assumed })
    : unknown(why, { assumed })
}

/** That a customer is unknown is said of one whose id fits, unless one whose id fits is known. */
function readLength(seen: Response, ten: Response): 'fits' | 'too long' | 'unclear' {
  if (isSuccess(seen)) return 'fits'
  if (seen.status >= 500) return 'unclear'
  if (seen.code !== 'E001') return 'too long'
  if (seen === ten) return 'fits'
  return isSuccess(ten) ? 'too long' : 'unclear'
}
