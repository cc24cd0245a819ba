import { command as status } from '../../src/commands/status.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { type TestContext, testContext } from './context.ts'
import { until } from './until.ts'

/** What `outboxd status` prints under these variables. */
export async function statusSays(env: Record<string, string>): Promise<string> {
  const { context } = await runStatus(() => testContext(env))
  return context.printed()
}

/** Gives the command until the outbox answers while it waits: on a busy machine that may take longer, and is printed in another order. */
export function runStatus(
  openContext: () => TestContext,
  options: OptionsOf<typeof status> = {},
): Promise<{ code: number; context: TestContext }> {
  return until(
    async () => {
      const context = openContext()
      return { code: await status.action(context, options), context }
    },
    ({ context }) => !context.printed().startsWith('The outbox has not answered yet'),
  )
}
