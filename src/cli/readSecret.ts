import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { CommandContext } from './context.ts'

/** A line from standard input: on a terminal it is asked for and not shown while it is typed. Without its line end. */
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
