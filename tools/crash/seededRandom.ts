/** Random numbers from a seed. The same seed gives the same numbers in the same order. */
export interface SeededRandom {
  /** Returns a number from [0, 1). */
  float(): number
  /** Returns a whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number
  chance(probability: number): boolean
  /** @throws Error if the list is empty */
  pick<T>(items: readonly T[]): T
}

/** @param name gives each part its own stream, so that draws of one part do not change those of another */
export function createSeededRandom(seed: number, name: string): SeededRandom {
  let state = [...name].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193), seed ^ 0x811c9dc5)
  // mulberry32
  const float = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const whole = (least: number, most: number) => least + Math.floor(float() * (most - least + 1))
  return {
    float,
    whole,
    chance: (probability) => float() < probability,
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new Error('there is nothing to pick from')
      return items[whole(0, items.length - 1)] as T
    },
  }
}
