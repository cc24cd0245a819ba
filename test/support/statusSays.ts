import { status } from '../../src/commands/status.ts'
import { testContext } from './context.ts'

/** What `outboxd status` prints under these variables. */
export async function statusSays(env: Record<string, string>): Promise<string> {
  const context = testContext(env)
  await status(context, {})
  return context.printed()
}
