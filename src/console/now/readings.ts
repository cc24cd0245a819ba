import { setTimeout } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { type OutboxHalf, type OutboxReads, readOutboxHalf } from '../../operations/readStatus.ts'
import type { ConsoleParts } from '../parts.ts'

const outboxAgeMs = 5_000
const hiddenAgeMs = 60_000
const readOnlyAgeMs = 9_900
/** An outbox that could not be read, or is locked, is asked again sooner. */
const troubledAgeMs = 4_000
/** To count a million rows takes its time: the outbox's database spends a fortieth of a core on it at most. */
const restTimes = 40
/** The page does not wait longer for what may be locked. */
const patienceMs = 150

/**
 * Makes what reads the outbox's half: now and then, and never so that the page waits for it. Meanwhile it is what it was before.
 */
export function createOutboxReading(
  parts: Pick<ConsoleParts, 'store' | 'clock' | 'live'>,
  ask: (reads: OutboxReads) => Promise<OutboxHalf> = readOutboxHalf,
): () => Promise<OutboxHalf> {
  const { clock } = parts
  const reads = slowReads(parts)
  let last: OutboxHalf = { kind: 'awaited' }
  let asking: Promise<OutboxHalf> | null = null
  let rests: { ageMs: () => number; forMs: number } | null = null

  async function askAnew(): Promise<OutboxHalf> {
    const tookMs = clock.stopwatch()
    try {
      last = await ask(await reads())
      const forMs = last.kind === 'read' ? Math.max(outboxAgeMs, tookMs() * restTimes) : troubledAgeMs
      rests = { ageMs: clock.stopwatch(), forMs }
      return last
    } finally {
      asking = null
    }
  }

  return () => {
    if (asking === null && rests !== null && rests.ageMs() < rests.forMs) return Promise.resolve(last)
    asking ??= askAnew()
    return Promise.race([asking, setTimeout(patienceMs, undefined, { ref: false }).then(() => last)])
  }
}

/** The outbox's half is made of what waits, and of what changes once in a while: that is read more rarely. */
function slowReads({ store, live }: Pick<ConsoleParts, 'store' | 'live'>): () => Promise<OutboxReads> {
  const readHidden = live.share(async () => (await store()).outbox.readHidden(), hiddenAgeMs)
  const readReadOnly = live.share(async () => (await store()).readReadOnly('outbox'), readOnlyAgeMs)
  return async () => {
    const { outbox, readOutboxLocks } = await store()
    return { outbox: { backlog: outbox.backlog, readHidden }, readReadOnly, readOutboxLocks }
  }
}

/**
 * Makes a reading of what is counted elsewhere: it is made again when the count is another, where the last is `leastMs` old, and
 * when it is `mostMs` old. Not to be asked again before it has answered.
 */
export function whenOther<T>(
  { stopwatch }: Pick<Clock, 'stopwatch'>,
  { leastMs, mostMs }: { leastMs: number; mostMs: number },
  read: () => Promise<T>,
): (count: string) => Promise<T> {
  let last: { count: string; value: T; ageMs: () => number } | null = null
  return async (count) => {
    if (last !== null && last.ageMs() < (count === last.count ? mostMs : leastMs)) return last.value
    last = { count, value: await read(), ageMs: stopwatch() }
    return last.value
  }
}
