/**
 * When an instance counts as dead, each time from its last sign of life, on the database's clock:
 *
 *      8 s   it takes on no more work itself (src/daemon/heartbeat.ts)
 *     12 s   its submissions are rescued, and nothing counts on it any more
 *     60 s   its settings no longer hold for the others (agreeOnBudget.ts)
 *      1 d   its row is deleted
 */
export const silentMaxMs = 12_000

/** How long the settings of an instance hold that says nothing any more. */
export const settingsHoldMs = 60_000

/** Whether a row of outboxd.instance, by the name that the statement gives it, is of one that lives. */
export const isAlive = (instance: string) =>
  `${instance}.beat_at > clock_timestamp() - interval '${silentMaxMs} milliseconds'`
