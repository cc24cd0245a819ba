/** Items in order of time; of equal times, the first added is first. */
export class Timeline<T> {
  readonly #entries: { atMs: number; item: T }[] = []

  get firstAtMs(): number {
    return this.#entries[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  /** The number of items that are due. */
  countUntil(nowMs: number): number {
    let [from, until] = [0, this.#entries.length]
    while (from < until) {
      const middle = (from + until) >> 1
      if ((this.#entries[middle]?.atMs ?? 0) <= nowMs) from = middle + 1
      else until = middle
    }
    return from
  }

  /** Items that are not due, the next one first. */
  after(nowMs: number): { atMs: number; item: T }[] {
    return this.#entries.slice(this.countUntil(nowMs))
  }

  add(atMs: number, item: T): void {
    this.#entries.splice(this.countUntil(atMs), 0, { atMs, item })
  }

  /** Gives items different times. They must be in the timeline. */
  move(times: ReadonlyMap<T, number>): void {
    for (const entry of this.#entries) entry.atMs = times.get(entry.item) ?? entry.atMs
    this.#entries.sort((a, b) => a.atMs - b.atMs)
  }

  take(): T {
    const first = this.#entries.shift()
    if (first === undefined) throw new Error('took from an empty timeline')
    return first.item
  }
}
