import type { Settings } from '../ledger/settings.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { type OutboxTable, tableAccessDigest, toOutboxTable } from './outboxTable.ts'

/** The digests of outbox.yaml and of each mapping file, as they stand in the ledger's settings. */
export const digestFiles = (outboxTable: OutboxTable | string, mappings: Mappings): Settings => ({
  'outbox.yaml': tableAccessDigest(toOutboxTable(outboxTable)),
  ...Object.fromEntries([...mappings.values()].map(({ type, digest }) => [`mapping of ${type}`, digest])),
})
