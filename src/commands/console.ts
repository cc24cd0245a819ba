import { once } from 'node:events'
import { type Command, InvalidArgumentError } from 'commander'
import { actorOf } from '../cli/actor.ts'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { escapeLines } from '../cli/table.ts'
import { openStoreOf } from '../cli/withOperatorStore.ts'
import { systemClock } from '../clock.ts'
import { readStoreConfig } from '../config.ts'
import { createConsole } from '../console/createConsole.ts'
import { troubleOf } from '../console/errors/errorRoutes.ts'
import { isLoopback } from '../console/guard/hosts.ts'
import { createLive } from '../console/live/createLive.ts'
import { openLater } from '../console/openLater.ts'

export interface ConsoleOptions {
  port: number
  host: string
  readOnly?: boolean
  as?: string
  json?: boolean
}

const portDefault = 9465

export function describeConsole(command: Command): Command {
  return command
    .description('serve pages that show what the commands say, and change what they change; on loopback')
    .option('--port <number>', 'port to listen on; 0 takes any that is free', portNumber, portDefault)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--read-only', 'show everything, change nothing')
    .option('--as <name>', 'who acts, for the event log (default: your name on this machine)')
    .option('--json', 'print one line of JSON on stdout when it listens: url, port')
}

/** Serves until SIGINT or SIGTERM. @returns 0 when told to stop, 1 when it cannot listen, 2 for options that are wrong */
export async function serveConsole(context: CommandContext, options: ConsoleOptions): Promise<number> {
  const config = readStoreConfig(context.env)
  if (!isLoopback(options.host)) return usageError(context, [`--host ${options.host}: only loopback`])
  const { who } = actorOf(context, options)
  const say = (line: string) => void context.stderr.write(`outboxd: ${escapeLines(line)}\n`)
  await using opened = openLater(() => openStoreOf(config))
  using live = createLive(systemClock, troubleOf)
  const parts = { store: opened.get, config, clock: systemClock, live, say }
  await using app = await createConsole(parts, { who, isReadOnly: options.readOnly ?? false })
  const url = await app.listen({ host: options.host, port: options.port })
  context.stderr.write(`The console is at ${url}\n`)
  if (options.json) context.stdout.write(`${JSON.stringify({ url, port: Number(new URL(url).port) })}\n`)
  if (!context.signal.aborted) await once(context.signal, 'abort')
  return exit.done
}

function portNumber(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (!(port <= 65_535)) throw new InvalidArgumentError('It must be a whole number from 0 to 65535.')
  return port
}
