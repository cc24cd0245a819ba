import { resources } from '../../resources.ts'
import { lineOf, nameOf } from '../exchange.ts'
import { sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const otherMethod: Question = {
  name: 'other-method',
  section: '7.1',
  asks: 'whether a method that a path does not take is 405 or 404',
  requestsMax: 1,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const { answer } = await parts.get(resources.data.path)
    const allow = answer.headers.allow === undefined ? '' : `; Allow: ${answer.headers.allow}`
    const why = `GET ${resources.data.path}: ${lineOf(answer)}${allow}`
    return sure(nameOf(answer), why, { contract: { other_method: String(answer.status) } })
  },
}
