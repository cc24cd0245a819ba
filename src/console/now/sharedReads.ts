import { setTimeout } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { type OutboxHalf, type OutboxReads, outboxStatusReads, readOutboxHalf } from '../../operations/readStatus.ts'
import { BoundedMap } from '../boundedMap.ts'
import type { ConsoleParts } from '../parts.ts'

/** Shares a read that is under way or less than `forMs` old. Drops a failed read. */
export function shareRead<T>(
  { stopwatch }: Pick<Clock, 'stopwatch'>,
  forMs: number,
  read: () => Promise<T>,
): () => Promise<T> {
  let reading: Promise<T> | undefined
  let ageMs = () => 0
  return () => {
    if (reading !== undefined && ageMs() < forMs) return reading
    const begun = read()
    reading = begun
    ageMs = () => 0
    begun.then(
      () => {
        ageMs = stopwatch()
      },
      () => {
        if (reading === begun) reading = undefined
      },
    )
    return begun
  }
}

const keysMax = 1_000

export function shareReadsByKey<T>(
  clock: Pick<Clock, 'stopwatch'>,
  forMs: number,
  read: (key: string) => Promise<T>,
): (key: string) => Promise<T> {
  const readings = new BoundedMap<string, () => Promise<T>>(keysMax)
  return (key) => {
    const reading = readings.get(key) ?? shareRead(clock, forMs, () => read(key))
    readings.set(key, reading)
    return reading()
  }
}

/** Reads again if the count changed and the value is `minMs` old, or if it is `maxMs` old. Not for concurrent calls. */
export function rereadOnChange<T>(
  { stopwatch }: Pick<Clock, 'stopwatch'>,
  { minMs, maxMs }: { minMs: number; maxMs: number },
  read: () => Promise<T>,
): (count: string) => Promise<T> {
  let last: { count: string; value: T; ageMs: () => number } | null = null
  return async (count) => {
    if (last !== null && last.ageMs() < (count === last.count ? maxMs : minMs)) return last.value
    last = { count, value: await read(), ageMs: stopwatch() }
    return last.value
  }
}

const outboxAgeMs = 5_000
const hiddenAgeMs = 60_000
const readOnlyAgeMs = 9_900
const troubledAgeMs = 4_000
/** The pause after a read, in multiples of its duration, because counting millions of rows is slow. */
const restTimes = 40
/** The longest wait of a page for the outbox, whose table may be locked. */
const patienceMs = 150

/** Reads the outbox's half of the status in the background. Pages get the last value. */
export function createOutboxReader(
  parts: Pick<ConsoleParts, 'databases' | 'clock'>,
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

function slowReads({ databases, clock }: Pick<ConsoleParts, 'databases' | 'clock'>): () => Promise<OutboxReads> {
  const reads = async () => outboxStatusReads(await databases())
  const countRowsBeforeStart = shareRead(clock, hiddenAgeMs, async () => (await reads()).countRowsBeforeStart())
  const readReadOnly = shareRead(clock, readOnlyAgeMs, async () => (await reads()).readReadOnly())
  return async () => ({ ...(await reads()), countRowsBeforeStart, readReadOnly })
}
