/** Something that is opened when it is first asked for, and tried again where that failed. Disposal closes it. */
export interface OpenedLater<T> extends AsyncDisposable {
  get(): Promise<T>
}

export function openLater<T extends AsyncDisposable>(open: () => Promise<T>): OpenedLater<T> {
  let opening: Promise<T> | undefined
  return {
    get() {
      const begun = opening ?? open()
      opening = begun
      begun.catch(() => {
        opening = undefined
      })
      return begun
    },
    async [Symbol.asyncDispose]() {
      const opened = await opening?.catch(() => undefined)
      await opened?.[Symbol.asyncDispose]()
    },
  }
}
