/** What a daemon's sessions are called, by application_name: its commands and other instances know it by them. */
export const daemonSessions = {
  work: 'outboxd',
  /** In which it claims rows of the outbox, and marks them. */
  outbox: 'outboxd outbox',
  queue: 'outboxd queue',
  heartbeat: 'outboxd heartbeat',
  listen: 'outboxd listen',
  /** In which it says that its ledger serves the outbox. */
  registration: 'outboxd registration',
} as const

/** The most connections that a daemon opens of each. */
export const connectionsMax = { work: 8, outbox: 4, queue: 2, heartbeat: 2, listen: 1, registration: 1 } as const

/** The most connections that a daemon opens to each database. */
export const daemonConnections = {
  ledger: connectionsMax.work + connectionsMax.queue + connectionsMax.heartbeat,
  outbox: connectionsMax.outbox + connectionsMax.listen + connectionsMax.registration,
} as const
