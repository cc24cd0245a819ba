import type { OutboxTableState } from '../outbox/inspectOutboxTable.ts'

/** Says whether inserts wake the daemon, what that costs the ERP, and the command that changes it. */
export function wakeMessage({ wakes, preparedMax }: Pick<OutboxTableState, 'wakes' | 'preparedMax'>): string {
  const prepared = `max_prepared_transactions is ${preparedMax}`
  const fails = `PREPARE TRANSACTION fails after an insert that ${wakes === 'always' ? 'the trigger announces' : 'found the daemon asleep'}`
  switch (wakes) {
    case 'sleepers':
      if (preparedMax === 0) return 'inserts wake the daemon where it sleeps'
      return `inserts wake the daemon where it sleeps, but ${prepared}, and ${fails}: if the ERP uses that, outboxd migrate --outbox --no-wake`
    case 'always':
      return `the trigger that wakes the daemon is an earlier version's: each insert takes a lock of the whole cluster as it commits${preparedMax > 0 ? `, and ${fails} (${prepared})` : ''}; outboxd migrate --outbox renews it`
    case 'never':
      if (preparedMax === 0)
        return 'without the trigger that wakes the daemon, rows wait for the next sweep, a second at most (outboxd migrate --outbox creates it)'
      return `rows wait for the next sweep, a second at most: ${prepared}, and a trigger that wakes the daemon would make PREPARE TRANSACTION fail (outboxd migrate --outbox --wake creates it nevertheless)`
    default:
      return wakes satisfies never
  }
}
