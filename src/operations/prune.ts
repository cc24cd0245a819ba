import { chainLogs } from '../ledger/audit/chain.ts'
import { logAct, type Operator } from '../ledger/operator/operator.ts'
import { type Pruned, type PruneEnd, type PruneRound, prune } from '../ledger/prune.ts'
import { findPresent } from '../outbox/readRows.ts'
import { type Databases, withOutbox } from './databases.ts'

/** Deletes and empties what the retention says, after chaining the logs. */
export async function pruneLedger(
  databases: Databases,
  { ledger, actor }: Operator,
  { goOn, onProgress }: Pick<PruneRound, 'goOn' | 'onProgress'>,
): Promise<PruneEnd> {
  const { retention } = databases.config
  await chainLogs(ledger, goOn) // what is not in the chain yet is not deleted
  let pruned: Pruned | null = null
  try {
    return await prune(
      {
        ledger,
        outbox: { findPresent: (ids) => withOutbox(databases, (outbox) => findPresent(outbox, ids)) },
      },
      {
        ...{ retention, turn: 'wait', goOn },
        onProgress(soFar) {
          pruned = soFar
          onProgress(soFar)
        },
      },
    )
  } finally {
    if (pruned !== null) await logAct(ledger, actor, 'prune', { ...retention, ...(pruned as Pruned) })
  }
}
