import { createInterface } from 'node:readline/promises'
import type { CommandContext } from './context.ts'

/** What came of asking. */
export type Confirmed = 'yes' | 'no' | 'no-terminal'

/** Asks on the terminal; nobody is asked where standard input is none. Anything but y or yes is a no. */
export async function confirm(
  { stdin, stderr, signal }: Pick<CommandContext, 'stdin' | 'stderr' | 'signal'>,
  question: string,
): Promise<Confirmed> {
  if (!(stdin as { isTTY?: boolean }).isTTY) return 'no-terminal'
  const terminal = createInterface({ input: stdin, output: stderr })
  // The end of input (ctrl-D) closes the terminal and answers nothing.
  const ended = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([terminal.question(`${question} [y/N] `, { signal }), ended])
    return /^y(es)?$/i.test(answer.trim()) ? 'yes' : 'no'
  } catch (error) {
    if (signal.aborted) return 'no'
    throw error
  } finally {
    terminal.close()
  }
}
