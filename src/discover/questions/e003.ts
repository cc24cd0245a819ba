import { notAsked } from '../finding.ts'
import type { Question } from '../question.ts'

export const e003: Question = {
  name: 'e003',
  section: '7.2',
  asks: 'the HTTP status of E003',
  requestsMax: 0,
  recordsMax: 0,
  samples: [],
  needs: [],
  harmless: false,
  async run() {
    return notAsked(
      'nobody can bring it about without taking the service down: ask its operator, or see it when it comes',
      {
        assumed: 'any: its code is what counts, or 503 without one',
      },
    )
  },
}
