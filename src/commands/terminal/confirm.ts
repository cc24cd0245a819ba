import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { CommandContext } from './context.ts'

type AskingContext = Pick<CommandContext, 'stdin' | 'stderr' | 'signal'>

/**
 * Any answer except y or yes is a no.
 * @param inScript the answer if standard input is not a terminal
 * @param otherwise printed after a no
 */
export async function askForConfirmation(
  context: AskingContext,
  question: string,
  {
    inScript: isYesInScript = false,
    otherwise = 'Nothing was changed.',
  }: { inScript?: boolean; otherwise?: string } = {},
): Promise<boolean> {
  const isTerminal = (context.stdin as { isTTY?: boolean }).isTTY ?? false
  const isYes = isTerminal ? await askYesOrNo(context, question) : isYesInScript
  const why = isTerminal ? '' : ` Standard input is not a terminal, so you could not be asked (${question}): add --yes.`
  if (!isYes) context.stderr.write(`${otherwise}${why}\n`)
  return isYes
}

async function askYesOrNo({ stdin, stderr, signal }: AskingContext, question: string): Promise<boolean> {
  const terminal = createInterface({ input: stdin, output: stderr })
  // Ctrl-D closes the terminal.
  const ended = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([terminal.question(`${question} [y/N] `, { signal }), ended])
    return /^y(es)?$/i.test(answer.trim())
  } catch (error) {
    if (signal.aborted) return false
    throw error
  } finally {
    terminal.close()
  }
}

export async function askForSecret({ stdin, stderr, signal }: CommandContext, question: string): Promise<string> {
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
