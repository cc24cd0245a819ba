/**
 * Whether a row of outboxd.pause counts: an operator's whose time is over is over, since nobody needs a proof. Any other
 * stands until a trial has shown that it is over.
 */
export const activePause = `cleared_at is null and (reason <> 'operator' or until is null or until > clock_timestamp())`

/**
 * Whether a row is of a pause that a trial has ended, and no record has proven so yet: until one has, records go one at a
 * time. A row that nobody has come back to for an hour says nothing any more.
 */
export const unprovenPause = `cleared_at > clock_timestamp() - interval '1 hour'`
