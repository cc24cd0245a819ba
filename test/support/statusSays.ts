import { command as status } from '../../src/commands/status.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { type TestContext, testContext } from './context.ts'

/** Returns what `outboxd status` prints with these variables. */
export async function statusSays(env: Record<string, string>): Promise<string> {
  const { context } = await runStatus(() => testContext(env))
  return context.printed()
}

export async function runStatus(
  openContext: () => TestContext,
  options: OptionsOf<typeof status> = {},
): Promise<{ code: number; context: TestContext }> {
  const context = openContext()
  return { code: await status.action(context, options), context }
}
