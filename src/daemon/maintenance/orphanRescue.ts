import { type RescueOrphansDeps, rescueOrphans } from './rescueOrphans.ts'

export interface OrphanRescueDeps extends RescueOrphansDeps {
  /** Looks at the database's clock; what the ledger has in time moves with it. @returns by how much it jumped */
  lookAtClock(): Promise<{ jumpMs: number }>
  onClockJump(jumpMs: number): void
  onRescued(count: number): void
}

/** Settles what dead instances were sending. */
export interface OrphanRescue {
  /** One round. @returns after how many milliseconds to begin the next */
  runOnce(): Promise<number>
}

const everyMs = 3_000

export function createOrphanRescue({ lookAtClock, onClockJump, onRescued, ...deps }: OrphanRescueDeps): OrphanRescue {
  return {
    async runOnce() {
      const { jumpMs } = await lookAtClock() // before anybody is judged by it
      if (jumpMs !== 0) onClockJump(jumpMs)
      onRescued(await rescueOrphans(deps))
      return everyMs
    },
  }
}
