import { until } from './until.ts'

/** Looks again and again until what `look` expects holds. The bound is for machines that are busy: it ends no good wait. */
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
