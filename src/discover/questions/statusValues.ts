import { lineOf } from '../exchange.ts'
import { type Finding, likely, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { hasEnded, type Life, lifeSample, statusIn } from '../samples/life.ts'

export const statusValues: Question = {
  name: 'status-values',
  section: '3.1',
  asks: 'the statuses of a transaction from first to last, and whether accepted is one',
  requestsMax: 0,
  recordsMax: 0,
  samples: [lifeSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    return judgeStatusValues(await parts.sample(lifeSample))
  },
}

/** docs/contract.md: what the daemon reads as pending, and as an end. */
const readStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])

/** Pure. */
export function judgeStatusValues({ polls }: Pick<Life, 'polls'>): Finding {
  const assumed = 'accepted or pending, then completed or failed'
  const said = polls.map(statusIn)
  const statuses = [...new Set(said.filter((status) => status !== null))]
  const last = polls.at(-1)
  if (statuses.length === 0 || last === undefined)
    return unknown(last === undefined ? 'nobody asked' : `no status can be read: ${lineOf(last.answer)}`, {
      assumed,
      differs: last !== undefined,
      cannot:
        last === undefined
          ? null
          : 'an answer without a status counts as a breach of contract, and the transaction is asked for again and again',
    })
  const found = statuses.join(', ')
  const foreign = statuses.filter((status) => !readStatuses.has(status.trim().toLowerCase()))
  const why = `${said.length} questions: ${said.map((status) => status ?? 'none').join(', ')}`
  if (foreign.length > 0)
    return sure(found, why, {
      assumed,
      differs: true,
      cannot: `${foreign.join(', ')} is no status that the daemon knows: it counts a breach of contract and asks again, so a record whose last status it is never ends`,
    })
  if (!said.some(hasEnded)) return likely(found, `${why}; its end was not seen`, { assumed })
  return sure(found, why, { assumed })
}
