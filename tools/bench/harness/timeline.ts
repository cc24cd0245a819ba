/** Items in order of time; of equal times, the first added is first. A binary heap and the number of due items. */
export class Timeline<T> {
  #heap: { atMs: number; order: number; item: T }[] = []
  #added = 0

  get firstAtMs(): number {
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  countUntil(nowMs: number): number {
    return this.#count(0, nowMs)
  }

  #count(i: number, nowMs: number): number {
    const entry = this.#heap[i]
    if (entry === undefined || entry.atMs > nowMs) return 0
    return 1 + this.#count(2 * i + 1, nowMs) + this.#count(2 * i + 2, nowMs)
  }

  /** Items that are not due, the next one first. */
  after(nowMs: number): { atMs: number; item: T }[] {
    return this.#heap.filter(({ atMs }) => atMs > nowMs).sort((a, b) => a.atMs - b.atMs || a.order - b.order)
  }

  /** Gives items different times. They must be in the timeline. */
  move(times: ReadonlyMap<T, number>): void {
    const entries = this.#heap
    this.#heap = []
    for (const { item, atMs } of entries) this.add(times.get(item) ?? atMs, item)
  }

  add(atMs: number, item: T): void {
    const heap = this.#heap
    heap.push({ atMs, order: this.#added++, item })
    for (let i = heap.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1
      if (!this.#before(i, parent)) break
      this.#swap(i, parent)
      i = parent
    }
  }

  take(): T {
    const heap = this.#heap
    this.#swap(0, heap.length - 1)
    const taken = heap.pop()
    if (taken === undefined) throw new Error('took from an empty timeline')
    for (let i = 0; ; ) {
      let least = i
      for (const child of [2 * i + 1, 2 * i + 2]) if (child < heap.length && this.#before(child, least)) least = child
      if (least === i) return taken.item
      this.#swap(i, least)
      i = least
    }
  }

  #before(i: number, j: number): boolean {
    const [a, b] = [this.#heap[i], this.#heap[j]]
    if (a === undefined || b === undefined) return false
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
  }

  #swap(i: number, j: number): void {
    const [a, b] = [this.#heap[i], this.#heap[j]]
    if (a === undefined || b === undefined) return
    this.#heap[i] = b
    this.#heap[j] = a
  }
}
