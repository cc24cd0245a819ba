import { ended, type MovedPoll, type PlannedPoll, type State } from '../../model.ts'
import type { PollPlanner } from './pollPlanner.ts'

export interface LearningDeps {
  planner: Pick<PollPlanner, 'learn' | 'mayReplan' | 'replan'>
  windowMs: number
  /** How long the last finished transactions took, oldest first. */
  readProcessingTimes(limit: number): Promise<Parameters<PollPlanner['learn']>[0]>
  readPlannedPolls(limit: number): Promise<PlannedPoll[]>
  movePolls(moves: readonly MovedPoll[]): Promise<void>
  /** Polls are due earlier than they were. */
  onMoved(): void
}

/** Learns from transactions that have ended when to ask for the others, and moves their polls where slots lie idle. */
export interface Learning {
  /** One round. @returns after how many milliseconds to begin the next */
  runOnce(): Promise<number>
  /** Steps were written; where they ended transactions there is something to learn. */
  onWritten(written: readonly { state: State; polls: number }[]): void
}

const mostOftenMs = 1_000
const replanMost = 200
const learnFromMost = 600
const ends: ReadonlySet<State> = new Set(ended)

export function createLearning(deps: LearningDeps): Learning {
  const { planner, windowMs } = deps
  let completions = 0
  /** So many completions were there when it last learned; null: it never has. */
  let learnedFrom: number | null = null

  async function learn(): Promise<void> {
    if (completions === learnedFrom) return
    const upTo = completions
    planner.learn(await deps.readProcessingTimes(learnFromMost))
    learnedFrom = upTo
  }

  async function replan(): Promise<void> {
    if (!planner.mayReplan()) return
    const moves = planner.replan(await deps.readPlannedPolls(replanMost))
    if (moves.length === 0) return
    await deps.movePolls(moves)
    deps.onMoved()
  }

  return {
    async runOnce() {
      await learn()
      await replan()
      return Math.min(mostOftenMs, windowMs / 60)
    },
    onWritten(written) {
      completions += written.filter(({ state, polls }) => ends.has(state) && polls > 0).length
    },
  }
}
