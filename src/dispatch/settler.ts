import type { Settlement, Transition } from '../record.ts'

export interface SettlerDeps<Settled> {
  settle(settlement: Settlement): Promise<Settled>
  /** Slots that can go back with the next write. */
  takeSpent(): Settlement['slots']
  /** Whether the database refuses the work itself, and would again; anything else may pass. */
  isRefusal(error: unknown): boolean
  settled(result: Settled, settlement: Settlement): void
  /** A write failed; it is tried again. */
  failed(error: unknown, settlement: Settlement): void
  /** One piece was refused for good. The ledger goes on saying that it is on the wire, and the takeover settles it. */
  gaveUp(error: unknown, settlement: Settlement): void
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
 * be forgotten whose request has left; the fences make repeating harmless. Only what the database refuses by itself is
 * given up, or everything after it would wait for ever.
 */
export function createSettler<Settled>(deps: SettlerDeps<Settled>): Settler {
  let gathered: { settlement: Settlement; done: () => void }[] = []
  let writing = false

  async function write(): Promise<void> {
    writing = true
    while (gathered.length > 0) {
      const group = gathered
      gathered = []
      const whole = merge([...group.map(({ settlement }) => settlement), { ...empty, slots: deps.takeSpent() }])
      await persist(whole, () => persistEach(whole))
      for (const { done } of group) done()
    }
    writing = false
  }

  async function persist(settlement: Settlement, refused: (error: unknown) => void | Promise<void>): Promise<void> {
    for (;;) {
      try {
        deps.settled(await deps.settle(settlement), settlement)
        return
      } catch (error) {
        if (deps.isRefusal(error)) return refused(error)
        deps.failed(error, settlement)
        await deps.waitMs(retryMs)
      }
    }
  }

  /** The database refuses the group: whichever piece it is, the others are not to wait for it. */
  async function persistEach({ transitions, ...rest }: Settlement): Promise<void> {
    const pieces = [
      { ...rest, transitions: [] },
      ...transitions.map((transition) => ({ ...empty, transitions: [transition] })),
    ]
    for (const piece of pieces) await persist(piece, (error) => deps.gaveUp(error, piece))
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
  passages: [],
  refusals: [],
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
    passages: settlements.flatMap((each) => each.passages),
    refusals: settlements.flatMap((each) => each.refusals),
    wayIsClear: settlements.some((each) => each.wayIsClear),
    probeOver: settlements.some((each) => each.probeOver),
    remaining: remaining.length > 0 ? Math.min(...remaining) : null,
  }
}
