export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** @returns a function that releases the lock */
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
