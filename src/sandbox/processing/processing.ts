import type { Parts } from '../exchange.ts'
import { parseDistribution, processingSeconds } from './distribution.ts'
import type { Draws } from './draws.ts'

/** How the processing of something accepted will go; decided on arrival and stored, so a restart changes nothing. */
export interface Course {
  doneUs: number
  outcome: 'completed' | 'failed'
  errorCode: string | null
}

const told = /^fail:([A-Za-z0-9_]{1,4000})/

/**
 * @param client whose settings it goes by
 * @param position of what is accepted, in the stream of draws
 * @param field2 text that may order a failure: `fail:E003` makes it end failed with E003
 */
export function decideCourse(
  parts: Parts,
  client: string,
  position: number,
  arrivedUs: number,
  field2: string,
): Course {
  const { processingTime, failureShare, failureCode } = parts.live(client)
  const share = (stream: Parameters<Draws['share']>[0]) => parts.draws.share(stream, client, position)
  const distribution = parseDistribution(processingTime)
  if (distribution === undefined) throw new Error(`processingTime ${processingTime} was checked and cannot be read`)
  const seconds = processingSeconds(distribution, [share('time'), share('time again')])
  const errorCode = told.exec(field2)?.[1] ?? (share('failure') < failureShare ? failureCode : null)
  return {
    doneUs: arrivedUs + Math.round(seconds * 1_000_000),
    outcome: errorCode === null ? 'completed' : 'failed',
    errorCode,
  }
}
