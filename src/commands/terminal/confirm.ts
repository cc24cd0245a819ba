import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { CommandContext } from './context.ts'

type AskingContext = Pick<CommandContext, 'stdin' | 'stderr' | 'signal'>

export type Confirmed = 'yes' | 'no' | 'no-terminal'

export async function isConfirmed(context: AskingContext, question: string): Promise<boolean> {
  const answer = await askYesOrNo(context, question)
  if (answer === 'no-terminal')
    context.stderr.write(
      'Nothing was changed, because standard input is not a terminal, so you could not be asked. Add --yes.\n',
    )
  if (answer === 'no') context.stderr.write('Nothing was changed.\n')
  return answer === 'yes'
}

/** True unless the operator answers no. In a script, the command itself is the confirmation. */
export async function isConfirmedOrScripted(context: AskingContext, question: string): Promise<boolean> {
  const answer = await askYesOrNo(context, question)
  if (answer === 'no') context.stderr.write('Nothing was changed.\n')
  return answer !== 'no'
}

/** Any answer but y or yes is a no. */
export async function askYesOrNo({ stdin, stderr, signal }: AskingContext, question: string): Promise<Confirmed> {
  if (!(stdin as { isTTY?: boolean }).isTTY) return 'no-terminal'
  const terminal = createInterface({ input: stdin, output: stderr })
  // Ctrl-D closes the terminal without an answer.
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

export async function readSecret({ stdin, stderr, signal }: CommandContext, question: string): Promise<string> {
  if (!(stdin as { isTTY?: boolean }).isTTY) return (await text(stdin as AsyncIterable<string>)).replace(/\r?\n$/, '')
  stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: stdin, output: nowhere, terminal: true })
  const ended = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    return await Promise.race([terminal.question('', { signal }), ended])
  } finally {
    terminal.close()
    stderr.write('\n')
  }
}
