import { isRefusal, isSuccess, lineOf, nameOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { type OwnIds, ownIdsSample } from '../samples/ownIds.ts'
import { idIn } from '../samples/submission.ts'

export const ownId: Question = {
  name: 'own-id',
  section: '4.2',
  asks: 'whether a record may bring its own transactionId',
  requestsMax: 0,
  recordsMax: 0,
  samples: [ownIdsSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    return judgeOwnId(await parts.sample(ownIdsSample))
  },
}

/** Pure. */
export function judgeOwnId({ id, first, again }: OwnIds): Finding {
  const assumed = 'no: mappings send none'
  const line = lineOf(first.answer)
  if (isRefusal(first.answer)) return sure('refused', line, { assumed })
  if (!isSuccess(first.answer)) return unknown(line, { assumed })
  if (idIn(first) !== id) return sure('ignored', `sent ${id}, answered ${idIn(first) ?? 'without an id'}`, { assumed })
  const second = again === null ? 'was not sent' : `was answered ${nameOf(again.answer)}`
  return sure('taken', `sent ${id}, and that is its transactionId; another record with it ${second}`, {
    assumed,
    differs: true,
    advice: [
      'a mapping may put `transactionId: ${submission.id}` into its body; then UNCERTAIN_POLICY=probe asks for a record in doubt by that id',
    ],
    cannot:
      again !== null && isSuccess(again.answer)
        ? 'two records may have the same id: with probe, one may be taken for the other'
        : null,
  })
}
