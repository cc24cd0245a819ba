import { readFileSync } from 'node:fs'
import type { Environment } from '../createVariableReader.ts'
import { defineCommand } from './terminal/command.ts'
import { exitCodes } from './terminal/context.ts'

const timeoutMs = 2_000

export const command = defineCommand({
  onlyLooks: true,
  withoutMappings: true,
  description: 'ask the daemon of this host or container whether it is alive',
  help: `The health check of the image. Asks /livez at HTTP_HOST and HTTP_PORT, and in a container that runs the sandbox, the sandbox.
Exits with 1 if there is no answer, or a bad one.

Examples:
  outboxd health`,
  async action({ env, stderr }): Promise<number> {
    const address = healthAddress(readFirstCommand(), env)
    const problem = await findProblem(address)
    if (problem === null) return exitCodes.done
    stderr.write(`outboxd: ${address}: ${problem}\n`)
    return exitCodes.failed
  },
})

/** Null if the answer is good. */
async function findProblem(address: string): Promise<string | null> {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(timeoutMs) })
    const text = await answer.text()
    return answer.ok ? null : text.trim()
  } catch (error) {
    const { message, cause } = error as Error
    return cause instanceof Error ? cause.message : message
  }
}

/** The command of the container's first process, because several containers may share one network. */
function readFirstCommand(): string[] {
  try {
    return readFileSync('/proc/1/cmdline', 'utf8').split('\0')
  } catch {
    return []
  }
}

export function healthAddress(words: readonly string[], env: Environment): string {
  if (!words.includes('sandbox')) return toAddress(env.HTTP_HOST, env.HTTP_PORT || '9464', '/livez')
  const host = findOption(words, '--host') || env.SANDBOX_HOST
  return toAddress(host, findOption(words, '--port') || env.SANDBOX_PORT || '8080', '/_sandbox/health')
}

/** Reads an option's two forms, `--port 80` and `--port=80`. */
function findOption(words: readonly string[], name: string): string | undefined {
  const at = words.indexOf(name)
  return at === -1 ? words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) : words[at + 1]
}

function toAddress(given: string | undefined, port: string, path: string): string {
  const host = reachable.get(given ?? '') ?? given ?? ''
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
}

/** Where to ask a process that listens on every address, or at its default one. */
const reachable = new Map([
  ['', '127.0.0.1'],
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
])
