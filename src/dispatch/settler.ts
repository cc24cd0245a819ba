import type { PauseCall, Transition } from '../record.ts'
import type { SpentSlot } from './purse.ts'

/** What came of some work, to be written together. */
export interface Settlement {
  transitions: Transition[]
  slots: SpentSlot[]
  pauses: PauseCall[]
  /** An answer came as it should: pauses whose time is over have been proven so. */
  wayIsClear: boolean
  /** The request that felt the way is through, whatever it met. */
  probeOver: boolean
  /** The least X-RateLimit-Remaining among the answers. */
  remaining: number | null
}

export interface SettlerDeps<Settled> {
  settle(settlement: Settlement): Promise<Settled>
  /** Slots that can go back with the next write. */
  takeSpent(): Settlement['slots']
  /** Whether the database is away: the same write may succeed later as it is. */
  isPassing(error: unknown): boolean
  settled(result: Settled, settlement: Settlement): void
  failed(error: unknown, settlement: Settlement): void
  waitMs(ms: number): Promise<void>
}

export interface Settler {
  /** Writes one piece of work as soon as the write before it is through, together with whatever has come by then. */
  add(work: Omit<Settlement, 'slots' | 'transitions'> & { transition: Transition | null }): Promise<void>
}

const retryMs = 500

/**
 * Writes the outcomes of work in groups: one write at a time, each taking all that has gathered. Idle, an answer is
 * written at once; under load a write carries dozens. A write that fails is repeated until it succeeds, as nothing may
 * be forgotten whose request has left; the fences make repeating harmless.
 */
export function createSettler<Settled>(deps: SettlerDeps<Settled>): Settler {
  let gathered: { settlement: Settlement; done: () => void }[] = []
  let writing = false

  async function write(): Promise<void> {
    writing = true
    while (gathered.length > 0) {
      const group = gathered
      gathered = []
      await persist(merge([...group.map(({ settlement }) => settlement), { ...empty, slots: deps.takeSpent() }]))
      for (const { done } of group) done()
    }
    writing = false
  }

  async function persist(settlement: Settlement): Promise<void> {
    for (;;) {
      try {
        deps.settled(await deps.settle(settlement), settlement)
        return
      } catch (error) {
        deps.failed(error, settlement)
        if (!deps.isPassing(error) && settlement.transitions.length > 1) return persistEach(settlement)
        await deps.waitMs(retryMs)
      }
    }
  }

  /** The database refuses the group: whichever piece it is, the others are not to wait for it. */
  async function persistEach({ transitions, ...rest }: Settlement): Promise<void> {
    await persist({ ...rest, transitions: [] })
    for (const transition of transitions) await persist({ ...empty, transitions: [transition] })
  }

  return {
    add({ transition, ...rest }) {
      return new Promise((done) => {
        gathered.push({ settlement: { ...rest, slots: [], transitions: transition ? [transition] : [] }, done })
        if (!writing) void write()
      })
    },
  }
}

const empty: Settlement = {
  transitions: [],
  slots: [],
  pauses: [],
  wayIsClear: false,
  probeOver: false,
  remaining: null,
}

function merge(settlements: readonly Settlement[]): Settlement {
  const remaining = settlements.flatMap((each) => each.remaining ?? [])
  return {
    transitions: settlements.flatMap((each) => each.transitions),
    slots: settlements.flatMap((each) => each.slots),
    pauses: settlements.flatMap((each) => each.pauses),
    wayIsClear: settlements.some((each) => each.wayIsClear),
    probeOver: settlements.some((each) => each.probeOver),
    remaining: remaining.length > 0 ? Math.min(...remaining) : null,
  }
}
