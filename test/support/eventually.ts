import { until } from './until.ts'

/** Repeats `look` until it throws no more, at most as long as `until`. */
export async function eventually(look: () => Promise<void> | void, mostMs = 60_000): Promise<void> {
  let missed: unknown
  const holds = async () => {
    try {
      await look()
      return true
    } catch (error) {
      missed = error
      return false
    }
  }
  await until(holds, (held) => held, mostMs).catch(() => {
    throw missed
  })
}
