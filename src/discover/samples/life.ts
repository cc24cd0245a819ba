import { resources } from '../../resources.ts'
import { type Exchange, endedAtMs, fieldOf, isSuccess, jsonOf } from '../exchange.ts'
import type { Parts, Sample } from '../question.ts'
import { acceptedRecord, submissionSample } from './submission.ts'

/** What was answered to the questions for one transaction, from the first to its end. */
export interface Life {
  acceptedAtMs: number
  polls: readonly Exchange[]
}

/** When to ask again: often at first, as the first states may be short. A minute in all. */
const waitsMs = [0, 300, 700, 2_000, 4_000, 8_000, 15_000, 30_000]

/** A transaction followed to its end, or for a minute (docs/interface.md, 3.1). */
export const lifeSample: Sample<Life> = {
  name: 'the life of a transaction',
  requestsMax: waitsMs.length,
  recordsMax: 0,
  samples: [submissionSample],
  async take(parts) {
    const { exchange, id } = await acceptedRecord(parts)
    const polls = await follow(parts, `${resources.data.path}/${encodeURIComponent(id)}`, waitsMs)
    return { acceptedAtMs: endedAtMs(exchange), polls }
  },
}

/** Asks for it until its status is one of an end. */
export async function follow(parts: Parts, path: string, waits: readonly number[]): Promise<Exchange[]> {
  const polls: Exchange[] = []
  for (const waitMs of waits) {
    await parts.waitMs(waitMs)
    const poll = await parts.getWhatever(path)
    polls.push(poll)
    if (soundsEnded.test(statusIn(poll) ?? '')) break
  }
  return polls
}

/** Words of an end, also such that the daemon does not know: nobody waits for more after one. */
const soundsEnded =
  /^(completed?|done|finished|closed|processed|success|succeeded|failed|failure|error|rejected|cancell?ed|shipped|delivered)$/i

/** The status that an answer says, as it is written; null where it says none. */
export function statusIn({ answer }: Exchange): string | null {
  const status = isSuccess(answer) ? fieldOf(jsonOf(answer), 'status') : undefined
  return typeof status === 'string' ? status : null
}

export const hasEnded = (status: string | null): boolean =>
  status !== null && /^(completed|failed)$/i.test(status.trim())
