import { type Erasure, eraseRecords } from '../ledger/audit/eraseRecords.ts'
import { type InstanceReload, writeReload } from '../ledger/instances.ts'
import { type Adoption, adoptOutbox, adoptService, type ServiceAdoption } from '../ledger/operator/adoptOutbox.ts'
import { writeDiscards } from '../ledger/operator/discardSubmissions.ts'
import type { Operator, Seen } from '../ledger/operator/operator.ts'
import { logSight, type Sight } from '../ledger/operator/operator.ts'
import { believeMassRefusals, endOperatorPause, raiseOperatorPause, shortenPauses } from '../ledger/operator/pauses.ts'
import { type Replay, writeReplays } from '../ledger/operator/replaySubmissions.ts'
import type { ArrivalSettled } from '../ledger/operator/resolveSubmission.ts'
import { writeArrived, writeNotArrived, writeTakenBack } from '../ledger/operator/resolveSubmission.ts'
import type { PruneEnd, PruneRound } from '../ledger/prune.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import type { PauseReason, State } from '../model.ts'
import type { Databases } from '../operations/databases.ts'
import { pruneLedger } from '../operations/prune.ts'

/**
 * What an operator changes; the logs say that it was he, and why. What he changes of submissions is one transaction each under the
 * revision that he saw, makes the report to the outbox due, and lets go who waited behind it.
 */
export interface OperatorChanges {
  /** @param newKeys also of what may have arrived  @returns the ids of those that were queued again */
  replay(replays: readonly Replay[], newKeys: boolean): Promise<string[]>
  resolveArrived(seen: Seen, transaction: TransactionRef): Promise<ArrivalSettled>
  /** @returns whether it keeps its idempotency key; null where it was no longer as it was seen, or nothing is to settle */
  resolveNotArrived(seen: Seen, newKey: boolean): Promise<{ keptKey: boolean } | null>
  /** @returns false where its id is no person's word, or it was no longer as it was seen */
  takeBack(seen: Seen): Promise<boolean>
  /** @returns the ids of those that were discarded */
  discard(seen: readonly (Seen & { state: State })[]): Promise<string[]>
  /** @param forMs null: until somebody resumes */
  pause(forMs: number | null): Promise<void>
  /** @returns what was said when the pause was raised; null where there was none */
  resume(): Promise<string | null>
  /** Lets the other pauses come to their end now. */
  shortenPauses(): Promise<PauseReason[]>
  /** Takes mass refusals at their word for so long. @returns what was said in them */
  believeRefusals(forMs: number): Promise<string[]>
  /** Asks all daemons that live to read their files again. */
  askReload(): Promise<InstanceReload[]>
  adopt(adoption: Adoption): Promise<void>
  adoptService(adoption: Parameters<typeof adoptService>[1]): Promise<ServiceAdoption>
  /** Logs that he saw values of records. */
  noteSight(sight: Sight): Promise<void>
  /** Erases what may be a person's data. @returns the ids of those that were erased */
  erase(erasures: readonly Erasure[]): Promise<string[]>
  /** Lets go what the retention of this configuration says. */
  prune(round: Pick<PruneRound, 'goOn' | 'onProgress'>): Promise<PruneEnd>
}

/** What this person changes, for this reason. Being replaced by the functions that it calls. */
export function operatorChanges(databases: Databases, operator: Operator): OperatorChanges {
  const { ledger, actor } = operator
  return {
    replay: (replays, newKeys) => writeReplays(operator, replays, newKeys),
    resolveArrived: (seen, transaction) => writeArrived(operator, seen, transaction),
    resolveNotArrived: (seen, newKey) => writeNotArrived(operator, seen, newKey),
    takeBack: (seen) => writeTakenBack(operator, seen),
    discard: (seen) => writeDiscards(operator, seen),
    pause: (forMs) => raiseOperatorPause(operator, forMs),
    resume: () => endOperatorPause(operator),
    shortenPauses: () => shortenPauses(operator),
    believeRefusals: (forMs) => believeMassRefusals(operator, forMs),
    askReload: () => writeReload(operator),
    adopt: (adoption) => adoptOutbox(operator, adoption),
    adoptService: (adoption) => adoptService(operator, adoption),
    noteSight: (sight) => logSight(ledger, actor, sight),
    erase: (erasures) => eraseRecords(operator, erasures),
    prune: (round) => pruneLedger(databases, operator, round),
  }
}
