/** Random numbers from a seed: the same seed gives the same ones in the same order. */
export interface SeededRandom {
  /** In [0, 1). */
  float(): number
  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number
  chance(probability: number): boolean
  /** @throws Error where there is nothing to pick from */
  pick<T>(items: readonly T[]): T
}

/** @param name keeps the streams of one seed apart, so that one part's throws do not shift another's */
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
