/** Admits one at a time for each name. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** Waits for the lock. @returns what releases it */
  async take(name: string): Promise<() => void> {
    const before = this.#last.get(name)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#last.set(name, promise)
    await before
    return () => {
      if (this.#last.get(name) === promise) this.#last.delete(name)
      resolve()
    }
  }
}
