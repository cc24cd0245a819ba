/**
 * Whether a row of outboxd.pause counts: an operator's whose time is over is over, as nothing has to be proven. Any other
 * stands until a request has felt the way. The row itself goes with the next answer that comes as it should.
 */
export const standingPause = `(reason <> 'operator' or until is null or until > clock_timestamp())`
