import { createServer } from 'node:http'
import { saysRunning } from '../../test/support/daemon.ts'
import { listenOnLoopback } from '../../test/support/listenOnLoopback.ts'
import type { Environment } from './environment.ts'
import type { ProgramCopy } from './programCopy.ts'

/** Daemons with a wrong configuration, started beside the fleet. Each must refuse to start. */
export interface StrangerFaults extends AsyncDisposable {
  /** Starts a daemon of the fleet's ledger at another service. @returns 1 if the daemon decided */
  secondService(): Promise<number>
  /** Daemons that started nevertheless, and requests that the other service got. */
  readonly intrusions: string[]
}

const refused = 2
const decidedWithinMs = 30_000

export async function startStrangerFaults(program: ProgramCopy, { env }: Environment): Promise<StrangerFaults> {
  const intrusions: string[] = []
  const other = createServer((request, response) => {
    intrusions.push(`the other service got ${request.method} ${request.url}`)
    response.writeHead(500).end()
  })
  const listening = await listenOnLoopback(other)

  /** A daemon that finds no database also ends, but that is not a refusal. */
  async function secondService(): Promise<number> {
    const { promise: decided, resolve: decide } = Promise.withResolvers<boolean>()
    await using daemon = program.start(['run'], { ...env, SERVICE_BASE_URL: listening.url }, (line) => {
      if (saysRunning(line)) decide(true)
    })
    const late = setTimeout(() => decide(false), decidedWithinMs)
    void daemon.ended().then(() => decide(false))
    const isRunning = await decided
    clearTimeout(late)
    if (isRunning) intrusions.push(`a daemon of a second service started:\n${daemon.lastLines()}`)
    daemon.signal('SIGKILL')
    const { code } = await daemon.ended()
    return isRunning || code === refused ? 1 : 0
  }

  return {
    intrusions,
    secondService,
    [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose](),
  }
}
