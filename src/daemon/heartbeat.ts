import { type HeartbeatAnswer, type InstanceProblem, writeHeartbeat } from '../ledger/instances.ts'
import { isTextRefused } from '../postgres/sqlState.ts'
import type { DaemonContext } from './context.ts'

const beatEveryMs = 1_000

/**
 * An instance whose last heartbeat is older than this begins no request.
 *
 *      0 s   the beat begins; the time that the database stores is later
 *    3.5 s   nothing is claimed any more, and no request begins to leave
 *      5 s   other instances may take the instance for dead (heartbeatSilenceMaxMs in src/ledger/instances.ts)
 *
 * The 1.5 s between are for requeueing unsent claims, and for clocks of different speeds. A beat times out after 2 s, so
 * one beat may be lost.
 */
const mayClaimMs = 3_500

export class Heartbeat {
  readonly #daemon: DaemonContext
  #ageMs = () => Number.POSITIVE_INFINITY
  #silences = 0
  /** True if the database's clock was set back, until the loop `orphans` has moved the times. */
  isClockBack = false
  /** By how much this host's clock is ahead of the database's; 0 if both may be right. */
  clockLeadMs = 0
  /** True if the ledger had the settings of this instance. */
  hasLedgersSettings = false

  constructor(daemon: DaemonContext) {
    this.#daemon = daemon
  }

  /**
   * @param problems of this instance, which the heartbeat writes
   * @throws ServiceMismatch if the ledger belongs to a different service. Then this instance claims no more work
   */
  async runOnce(problems: readonly InstanceProblem[]): Promise<number> {
    const { clock, databases, log, wakeups } = this.#daemon
    const sinceBegunMs = clock.stopwatch()
    const beforeMs = clock.nowMs()
    const { history, beats, hasOrphans, isClockBack, ...seen } = await this.write(problems)
    if (databases.history.note(history, beats)) wakeups.history.wake()
    if (isClockBack && !this.isClockBack)
      log.warn('database clock was set back: waiting work is done now, not only when the clock has caught up')
    this.isClockBack ||= isClockBack
    if (hasOrphans || isClockBack) wakeups.orphans.wake()
    this.clockLeadMs = computeClockLeadMs(beforeMs, clock.nowMs(), seen.dbMs)
    this.hasLedgersSettings = seen.hasLedgersSettings
    if (!this.mayClaim()) this.#silences += 1
    this.#ageMs = sinceBegunMs
    return beatEveryMs
  }

  /** False if other instances may soon take this instance for dead. Then no record may be sent. */
  mayClaim(): boolean {
    return this.#ageMs() < mayClaimMs
  }

  /** The returned function becomes false with `mayClaim`, and stays false, because others may act meanwhile. */
  watchHeartbeat(): () => boolean {
    const before = this.#silences
    return () => this.#silences === before && this.mayClaim()
  }

  protected async write(problems: readonly InstanceProblem[]): Promise<HeartbeatAnswer> {
    const { config, databases } = this.#daemon
    const { heartbeats, history, instance } = databases
    const options = { lookedFor: history.lookFor(), service: config.service }
    try {
      return await writeHeartbeat(heartbeats, instance, { ...options, problems })
    } catch (error) {
      if (problems.length === 0 || !isTextRefused(error)) throw error
      // A text that the database's encoding lacks must not stop the heartbeat.
      const plain = problems.map((each) => ({ ...each, detail: each.detail.replace(/[^\x20-\x7e]/g, '?') }))
      return writeHeartbeat(heartbeats, instance, { ...options, problems: plain })
    }
  }
}

const clockToleranceMs = 5_000

/** @param beforeMs the host's time before the database was asked */
export function computeClockLeadMs(beforeMs: number, afterMs: number, dbMs: number): number {
  const leadMs = Math.max(0, beforeMs - dbMs) + Math.min(0, afterMs - dbMs)
  return Math.abs(leadMs) > clockToleranceMs ? leadMs : 0
}
