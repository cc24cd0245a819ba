import { afterAll, beforeAll } from 'vitest'

/**
 * Opens something before the first test of a file, or of the `describe` that calls this, and disposes of it after the last
 * one. Only tests and hooks can use the result, which stands for what `open` returned.
 */
export function openForFile<T extends AsyncDisposable>(open: () => Promise<T>): T {
  let opened: T | undefined
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(() => opened?.[Symbol.asyncDispose]())
  return new Proxy({} as T, {
    get(_, name) {
      if (opened === undefined) throw new Error('only tests and hooks can use what is opened for a file')
      return Reflect.get(opened, name, opened)
    },
  })
}
