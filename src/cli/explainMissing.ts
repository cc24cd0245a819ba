import type { PrunedSubmission } from '../ledger/retention.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { readReferences } from './references.ts'
import { showTime } from './time.ts'

/**
 * Why a name fits no submission. A row that has not been captured yet is not missing: it waits in the outbox; and of what was
 * pruned it is known how it ended.
 */
export async function explainMissing(store: OperatorStore, name: string): Promise<string> {
  const [reference] = readReferences(name)
  if (reference?.kind === 'outbox')
    return (
      (await explainMissingRow(store, reference.outboxId)) ??
      `there is no submission ${name}, and no row ${reference.outboxId} in the outbox`
    )
  return (
    (await explainMissingRow(store, name)) ??
    `there is no submission ${name}; where it was pruned (RETENTION_DAYS), outboxd show outbox:N still says how it ended`
  )
}

/** Why an outbox row has no submission; null if there is no such row and never was. */
export async function explainMissingRow(store: OperatorStore, outboxId: string): Promise<string | null> {
  const pruned = await store.readPruned(outboxId)
  if (pruned !== null) return prunedMessage(outboxId, pruned)
  const record = await store.outbox.readRecord(outboxId).catch(() => null)
  if (record === null) return null
  if (await store.outbox.liesBefore(outboxId).catch(() => false))
    return `the row ${outboxId} lies before the start position of this outbox, so it is never sent: outboxd status names the position, outboxd adopt --start id:N or since:D an earlier one`
  if (!(await store.outbox.saysThatItWaits(outboxId).catch(() => true)))
    return `the ledger knows no record of the row ${outboxId}, and the row does not say that it waits, so nothing is sent of it: it was done before the ledger served this table, or the ledger has lost it; look at what the row says, and outboxd recover --dry-run shows those that say they are under way`
  const since = record.createdAt === null ? '' : ` since ${record.createdAt}`
  return `the row ${outboxId} waits in the outbox${since} and has not been captured: outboxd status shows what is in front of it, outboxd map --outbox ${outboxId} the request that it would become`
}

function prunedMessage(outboxId: string, { id, state, endedMs, prunedMs, transactionId }: PrunedSubmission): string {
  const as = transactionId === null ? '' : ` as transaction ${transactionId}`
  return `the record of the row ${outboxId} was ${state} on ${showTime(endedMs)}${as} and pruned on ${showTime(prunedMs)} (RETENTION_DAYS); it was submission ${id}, and is not sent again`
}
