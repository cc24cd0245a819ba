import type pg from 'pg'
import type { Clock } from '../clock.ts'
import { readPollLoad } from '../ledger/budget.ts'
import { type PollQueue, readPlannedPolls } from '../ledger/queue.ts'
import { type ProcessingTime, readProcessingTimes } from '../ledger/snapshot.ts'
import type { PollLoad, RequestDemand } from '../model/dispatch.ts'
import type { MovedPoll, PlannedPoll } from '../model/submission.ts'
import { inTransaction } from '../postgres/database.ts'
import { makePerResource, type Resource } from '../resources.ts'
import type { LoopPart } from './loop.ts'
import { type BudgetPressure, PollSchedule } from './pollSchedule.ts'

/** Ready records are counted up to this. More hardly change a poll's price, and counting costs more than sending. */
export const readyRecordsCountedMax = 1_000

/** Plans the polls of all resources: keeps their schedules and what polls compete with. */
export class PollPlanner {
  readonly #windowMs: number
  #schedules: Record<Resource, PollSchedule>
  #pressure: BudgetPressure = { limit: 1, submissionsWaiting: 0, accepted: 0, submissionsPerWindow: 0 }
  /** Two after work: the second look finds what came of the work that the first one saw begin. */
  #looksLeft = 0
  /** Submissions in each of the last windows, the newest last. */
  #submissionsByWindow: number[] = []
  #windowBeganMs = 0
  readonly #captureWindow: number
  #outboxRowsWaiting = 0

  constructor(windowMs: number, captureWindow = readyRecordsCountedMax) {
    this.#windowMs = windowMs
    this.#captureWindow = captureWindow
    this.#schedules = makePerResource(() => new PollSchedule([], windowMs))
  }

  /** @param times the newest last */
  learn(times: readonly ProcessingTime[]): void {
    this.#schedules = makePerResource((resource) => {
      const own = times.filter((time) => time.resource === resource)
      return new PollSchedule(
        own.map(({ ms }) => ms),
        this.#windowMs,
      )
    })
  }

  noteOutboxRowsWaiting(rows: number): void {
    this.#outboxRowsWaiting = rows
  }

  /**
   * Adds the outbox's waiting rows only while the ledger holds many queued records. Otherwise these rows may have been
   * captured since they were counted, and would count twice.
   */
  noteDemand({ limit, submissionsReady, pollsDue }: PollCompetitors): void {
    const isFull = submissionsReady >= Math.min(this.#captureWindow, readyRecordsCountedMax) / 2
    const submissionsWaiting = submissionsReady + (isFull ? this.#outboxRowsWaiting : 0)
    this.#pressure = { ...this.#pressure, limit: Math.max(1, limit), submissionsWaiting }
    if (submissionsReady + pollsDue > 0) this.#looksLeft = 2
  }

  noteLoad({ tracked, submissionsSent }: PollLoad, nowMs: number): void {
    if (nowMs - this.#windowBeganMs >= this.#windowMs) {
      this.#submissionsByWindow = [...this.#submissionsByWindow, submissionsSent].slice(-WINDOWS_KEPT)
      this.#windowBeganMs = nowMs
    }
    const kept = this.#submissionsByWindow
    const submissionsPerWindow = kept.reduce((sum, each) => sum + each, 0) / Math.max(1, kept.length)
    this.#pressure = { ...this.#pressure, accepted: tracked, submissionsPerWindow }
    this.#looksLeft = Math.max(0, this.#looksLeft - 1)
  }

  /** False if nothing was sent or polled before the last look, so that the ledger need not be asked. */
  isBusy(): boolean {
    const { submissionsWaiting, accepted, submissionsPerWindow } = this.#pressure
    return this.#looksLeft + submissionsWaiting + accepted + submissionsPerWindow > 0
  }

  nextPollDelayMs(resource: Resource, notDoneAgeMs: number): number {
    return this.#schedules[resource].nextPollDelayMs(notDoneAgeMs, this.#pressure)
  }

  /** True if no submission needs the requests that earlier polls would take. */
  canMovePolls(): boolean {
    return this.#pressure.accepted > 0 && this.#pressure.submissionsWaiting === 0
  }

  /** Finds the polls that were planned at a higher price, and that are due clearly earlier now. Never delays a poll. */
  findPollsToMove(polls: readonly PlannedPoll[]): MovedPoll[] {
    return polls.flatMap(({ submissionId, resource, ageMs, notDoneMs, inMs }) => {
      const notDoneAgeMs = notDoneMs ?? 0
      const betterInMs = Math.max(0, notDoneAgeMs + this.nextPollDelayMs(resource, notDoneAgeMs) - ageMs)
      return betterInMs < inMs * WORTHWHILE_SHARE ? [{ submissionId, inMs: betterInMs }] : []
    })
  }
}

export type PollDelays = Pick<PollPlanner, 'nextPollDelayMs'>

export type PollCompetitors = Pick<RequestDemand, 'limit' | 'submissionsReady' | 'pollsDue'>

const WINDOWS_KEPT = 6
const WORTHWHILE_SHARE = 0.8

/** Feeds the planner with the ledger's processing times and load, and moves polls that it would now plan earlier. */
export class PollPlanUpdates implements LoopPart {
  readonly #planner: PollPlanner
  readonly #ledger: pg.Pool
  readonly #queue: PollQueue
  readonly #roundMs: number
  readonly #runningMs: () => number
  #lookedMs: number | null = null
  readonly #onMoved: () => void

  constructor(
    planner: PollPlanner,
    { ledger, queue }: { ledger: pg.Pool; queue: PollQueue },
    { windowMs, clock, onMoved }: { windowMs: number; clock: Pick<Clock, 'stopwatch'>; onMoved(): void },
  ) {
    this.#planner = planner
    this.#ledger = ledger
    this.#queue = queue
    this.#roundMs = Math.min(ROUND_MAX_MS, windowMs / 60)
    this.#runningMs = clock.stopwatch()
    this.#onMoved = onMoved
  }

  async runOnce(): Promise<number> {
    await this.#look()
    await this.#movePolls()
    return this.#roundMs
  }

  /** Less often than each round, because it costs as much as a claim. */
  async #look(): Promise<void> {
    const nowMs = this.#runningMs()
    if (
      this.#lookedMs !== null &&
      (!this.#planner.isBusy() || nowMs - this.#lookedMs < this.#roundMs * ROUNDS_PER_LOOK)
    )
      return
    this.#planner.learn(await readProcessingTimes(this.#ledger))
    this.#planner.noteLoad(await readPollLoad(this.#ledger), nowMs)
    this.#lookedMs = nowMs
  }

  async #movePolls(): Promise<void> {
    if (!this.#planner.canMovePolls()) return
    const moves = this.#planner.findPollsToMove(await readPlannedPolls(this.#ledger, MOVED_MAX))
    if (moves.length === 0) return
    await inTransaction(this.#ledger, (db) => this.#queue.move(db, moves))
    this.#onMoved()
  }
}

const ROUND_MAX_MS = 1_000
const ROUNDS_PER_LOOK = 5
const MOVED_MAX = 1_000
