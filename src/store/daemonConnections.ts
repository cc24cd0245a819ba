import { heartbeatConnections } from '../ledger/heartbeatStore.ts'
import { queueConnections } from '../ledger/queue.ts'

/** The most connections of the pools that openStore opens. */
export const poolConnections = { ledger: 8, outbox: 4 } as const

/** The most connections that a daemon opens to each database. */
export const daemonConnections = {
  ledger: poolConnections.ledger + queueConnections + heartbeatConnections,
  outbox: poolConnections.outbox + 2, // one that listens, and one that registers the ledger
} as const
