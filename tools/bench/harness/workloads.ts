/** Processing times, in proportion to the window. */
export function distributions(windowMs: number): Record<string, (random: () => number) => number> {
  const secondMs = windowMs / 60
  return {
    'constant 30 s ± 10 %': (random) => secondMs * 30 * (0.9 + 0.2 * random()),
    'log-normal 20 s, σ 0.6': (random) => secondMs * 20 * Math.exp(0.6 * normal(random)),
    'humps 2-5 s, 120-300 s': (random) => secondMs * (random() < 0.8 ? 2 + 3 * random() : 120 + 180 * random()),
    'exponential 20 s': (random) => secondMs * -20 * Math.log(1 - random()),
  }
}

/** Random times of arrivals, `perWindow` in a window on average. */
export function arrivals(perWindow: number, windowMs: number, durationMs: number, seed: number): number[] {
  const random = randomFrom(seed)
  const times: number[] = []
  let atMs = 0
  while (atMs < durationMs) {
    atMs += (-Math.log(1 - random()) * windowMs) / perWindow
    times.push(atMs)
  }
  return times
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

/** Returns numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
