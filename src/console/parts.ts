import type { Clock } from '../clock.ts'
import type { DatabaseConfig } from '../config.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import type { TransactionAnswer } from '../operations/askForTransaction.ts'
import type { Databases } from '../operations/databases.ts'
import { explainError } from '../operations/explainError.ts'
import type { ConcurrencyLimit } from './bounds.ts'
import type { Installation } from './html/layout.ts'

export interface ConsoleParts {
  databases(): Promise<Databases>
  config: DatabaseConfig
  installation: Installation
  clock: Clock
  searches: ConcurrencyLimit
  /** Asks within the budget. Never throws. */
  askService(transaction: TransactionRef): Promise<TransactionAnswer>
  /** Writes a line to the console's own log, never a record's data. */
  say(line: string): void
}

export const overviewVersionPath = '/overview/version'

export type MappingFiles = { kind: 'value'; mappings: Mappings } | { kind: 'invalid'; problem: string }

/** Reads the files at each call, so that a correction shows at once. */
export function readMappingFiles({ mappingsDir }: Pick<DatabaseConfig, 'mappingsDir'>): MappingFiles {
  try {
    return { kind: 'value', mappings: loadMappings(mappingsDir) }
  } catch (error) {
    return { kind: 'invalid', problem: explainError(error).message }
  }
}

/**
 * Shares a read that is under way or ended a short time ago. Drops a failed read.
 * @param maxAgeMs may be a function of how long the read took
 */
export function shareRecentRead<T>(
  { stopwatch }: Pick<Clock, 'stopwatch'>,
  maxAgeMs: number | ((tookMs: number) => number),
  read: () => Promise<T>,
): () => Promise<T> {
  let reading: Promise<T> | undefined
  let isOld = () => false
  return () => {
    if (reading !== undefined && !isOld()) return reading
    const tookMs = stopwatch()
    const begun = read()
    reading = begun
    isOld = () => false
    begun.then(
      () => {
        const [ageMs, restMs] = [stopwatch(), typeof maxAgeMs === 'number' ? maxAgeMs : maxAgeMs(tookMs())]
        isOld = () => ageMs() >= restMs
      },
      () => {
        if (reading === begun) reading = undefined
      },
    )
    return begun
  }
}
