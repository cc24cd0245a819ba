import { appendLogsToChain } from '../ledger/audit/chain.ts'
import { logOperatorAct, type Operator } from '../ledger/operator/operator.ts'
import { type Pruned, type PruneEnd, type PruneRound, pruneRound } from '../ledger/prune.ts'
import { findExistingRows } from '../outbox/readRows.ts'
import { type Databases, withOutbox } from './databases.ts'

/** Chains the logs, then deletes and empties what is due. */
export async function pruneLedger(
  databases: Databases,
  { ledger, actor }: Operator,
  { goOn, onProgress }: Pick<PruneRound, 'goOn' | 'onProgress'>,
): Promise<PruneEnd> {
  const { retention } = databases.config
  await appendLogsToChain(ledger, goOn) // entries that are not in the chain yet are not deleted
  let pruned: Pruned | null = null
  try {
    return await pruneRound(
      {
        ledger,
        outbox: { findExistingRows: (ids) => withOutbox(databases, (outbox) => findExistingRows(outbox, ids)) },
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
    if (pruned !== null) await logOperatorAct(ledger, actor, 'prune', { ...retention, ...(pruned as Pruned) })
  }
}
