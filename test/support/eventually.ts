import { until } from './until.ts'

/** Repeats `look` until it throws no more. The bound is long enough for busy machines. */
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
