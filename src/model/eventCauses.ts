/** Why an event of the log was written. The table's CHECK has the same list. */
export const eventCauses = [
  // The record enters the ledger; the event's state says as what.
  'captured',
  // A request.
  'claimed',
  'never_sent',
  'never_asked',
  // What the answer to a submission means.
  'accepted',
  'rejected',
  'uncertain',
  'new_key',
  'retried',
  'resent',
  'probed',
  'duplicate_id',
  // What the answer to a poll means.
  'pending',
  'completed',
  'lost',
  'asked_again',
  'resubmitted',
  'had_arrived',
  'had_not_arrived',
  // What the answer to either means.
  'failed',
  'new_token',
  'paused',
  // A newer version of the document takes its place.
  'superseded',
  // An operator's decision.
  'replayed',
  'resolved',
  'withdrawn',
  'discarded',
  'recovered',
] as const
export type EventCause = (typeof eventCauses)[number]

/** Who caused an event. The event's `who` says which daemon, or the operator's name. */
export const eventActors = ['outboxd', 'operator'] as const
export type EventActor = (typeof eventActors)[number]
