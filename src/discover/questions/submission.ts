import { resources } from '../../resources.ts'
import { fieldOf, isSuccess, lineOf, nameOf, type Response } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { idIn, submissionSample } from '../samples/submission.ts'

export const submission: Question = {
  name: 'submission',
  section: '2.3',
  asks: 'how a record is taken: status, id, and what else its answer has',
  requestsMax: 0,
  recordsMax: 0,
  samples: [submissionSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const { tried } = await parts.sample(submissionSample)
    const last = tried.at(-1)
    return last === undefined ? unknown('no record was sent') : judgeSubmission(last.answer, idIn(last))
  },
}

/** @param id as the daemon reads it. Pure */
export function judgeSubmission(seen: Response, id: string | null): Finding {
  const assumed = '200 with a transactionId'
  const line = lineOf(seen)
  if (!isSuccess(seen))
    return unknown(`no record was taken: ${line}`, { assumed, cannot: `a record is answered ${nameOf(seen)}` })
  if (id === null)
    return sure(`${seen.status} without ${resources.data.idField}`, line, {
      assumed,
      differs: true,
      cannot: `an answer without a ${resources.data.idField} that can be read: each record becomes uncertain, as nobody can ask for it`,
    })
  const isNumber = typeof fieldOf(seen.json, resources.data.idField) !== 'string'
  const more = Object.keys(Object(seen.json)).filter((name) => !['transactionId', 'status', 'timestamp'].includes(name))
  const why = [
    line,
    isNumber ? 'the id is a number, and kept with its digits' : null,
    more.length > 0 ? `more fields, which are ignored: ${more.join(', ')}` : null,
  ]
  const contract = { submit_ok: String(seen.status) }
  return sure(String(seen.status), why.filter((each) => each !== null).join('; '), {
    assumed,
    differs: seen.status !== 200,
    contract,
  })
}
