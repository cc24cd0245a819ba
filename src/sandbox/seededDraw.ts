/**
 * The n-th draw of a seeded stream, at least 0 and below 1.
 *
 * A function of its arguments alone: a restarted sandbox that has stored `n` transactions goes on where it was.
 *
 * @param stream a name that keeps draws for different purposes apart
 * @see splitmix32: a counter through a mixing function, good enough for test data
 */
export function draw(seed: number, stream: string, n: number): number {
  let state = mix((seed ^ 0x9e3779b9) >>> 0)
  for (const char of stream) state = mix(state ^ char.charCodeAt(0))
  return mix(state + Math.imul(n, 0x9e3779b9)) / 2 ** 32
}

function mix(value: number): number {
  let state = (value + 0x9e3779b9) | 0
  state = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
  state = Math.imul(state ^ (state >>> 15), 0x735a2d97)
  return (state ^ (state >>> 15)) >>> 0
}
