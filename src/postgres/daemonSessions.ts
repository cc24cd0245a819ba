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
