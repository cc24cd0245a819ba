import { parseDistribution, processingSeconds } from './distribution.ts'
import type { Parts } from './exchange.ts'
import { draw } from './seededDraw.ts'

/** How the processing of something accepted will go; decided on arrival and stored, so a restart changes nothing. */
export interface Course {
  doneUs: number
  outcome: 'completed' | 'failed'
  errorCode: string | null
}

const told = /^fail:([A-Za-z0-9_]{1,20})/

/** @param field2 text that may order a failure: `fail:E003` makes it end failed with E003 */
export function decideCourse(parts: Parts, arrivedUs: number, field2: string): Course {
  const { seed, processingTime, failureShare, failureCode } = parts.live()
  const n = parts.nextDraw()
  const distribution = parseDistribution(processingTime)
  if (distribution === undefined) throw new Error(`processingTime ${processingTime} was checked and cannot be read`)
  const seconds = processingSeconds(distribution, [draw(seed, 'time', n), draw(seed, 'time again', n)])
  const errorCode = told.exec(field2)?.[1] ?? (draw(seed, 'failure', n) < failureShare ? failureCode : null)
  return {
    doneUs: arrivedUs + Math.round(seconds * 1_000_000),
    outcome: errorCode === null ? 'completed' : 'failed',
    errorCode,
  }
}
