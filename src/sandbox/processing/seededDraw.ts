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

/** The n-th UUID (version 4) of a seeded stream; a stream has 2^32 different ones. */
export function drawUuid(seed: number, stream: string, n: number): string {
  const bytes = Buffer.alloc(16)
  for (let word = 0; word < 4; word += 1) bytes.writeUInt32BE(draw(seed, `${stream} ${word}`, n) * 2 ** 32, 4 * word)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

function mix(value: number): number {
  let state = (value + 0x9e3779b9) | 0
  state = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
  state = Math.imul(state ^ (state >>> 15), 0x735a2d97)
  return (state ^ (state >>> 15)) >>> 0
}
