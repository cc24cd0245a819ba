import { PassThrough, Writable } from 'node:stream'
import type { CommandContext } from '../../src/commands/terminal/context.ts'

/** A context for a command under test, and what the command wrote. */
export interface TestContext extends CommandContext {
  stdin: PassThrough & { isTTY?: boolean }
  /** Output on stdout so far. */
  printed(): string
  /** Output on stderr so far. */
  messages(): string
  abort(): void
}

/** @param input text that an operator types on a terminal; null if standard input is not a terminal */
export function testContext(env: Record<string, string>, input: string | null = null): TestContext {
  const controller = new AbortController()
  const stdin = Object.assign(new PassThrough(), input === null ? {} : { isTTY: true })
  if (input !== null) stdin.end(input)
  const [stdout, printed] = captured()
  const [stderr, messages] = captured()
  return {
    env,
    stdin,
    stdout,
    stderr,
    signal: controller.signal,
    onCrash() {},
    printed,
    messages,
    abort: () => controller.abort(new Error('SIGTERM')),
  }
}

function captured(): [Writable, () => string] {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk
      done()
    },
  })
  return [stream, () => text]
}
