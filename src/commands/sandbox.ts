import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import {
  environment,
  isEmbedded,
  optionsSchema,
  readEnvironment,
  type Sandbox,
  type SandboxSettings,
  startSandbox,
} from '../sandbox/startSandbox.ts'

/** What the command needs of the context. */
export type SandboxContext = Pick<CommandContext, 'env' | 'stdout' | 'stderr' | 'signal'>

export interface SandboxCommandOptions {
  /** As given on the command line; SANDBOX_PORT and then 8080 without it. */
  port?: string | number
  host?: string
  /** `system`, or a time at which the clock stands. */
  clock?: string
  embedded?: boolean
  /** The folder of `--data`. */
  data?: string
  json?: boolean
}

export function describeSandbox(command: Command): Command {
  return command
    .description('run the service itself as a test environment, on loopback')
    .option('--port <number>', 'port to listen on; 0 takes any that is free (default: SANDBOX_PORT, else 8080)')
    .option('--host <address>', 'address to listen on (default: SANDBOX_HOST, else 127.0.0.1)')
    .option(
      '--clock <time>',
      "a time at which the clock stands until /_sandbox/clock moves it on (default: SANDBOX_CLOCK, else the system's clock)",
    )
    .option('--embedded', 'bring a PostgreSQL, in a temporary folder that is removed at the end; no database is needed')
    .option('--data <folder>', 'the same, and keep its data in this folder: the next start goes on with them')
    .option(
      '--json',
      'print one line of JSON on stdout: url, port, clientId, and databaseUrl of an embedded PostgreSQL',
    )
    .addHelpText('after', help())
}

/**
 * Serves until SIGINT or SIGTERM.
 *
 * @returns 0 when told to stop, 1 when it could not start, 2 when the settings are wrong
 */
export async function sandbox(context: SandboxContext, options: SandboxCommandOptions): Promise<number> {
  const read = readEnvironment(context.env, (path) => readFileSync(path, 'utf8'), {
    ...(options.port === undefined ? {} : { port: Number(options.port) }),
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.embedded ? { embedded: true } : {}),
    ...(options.data === undefined ? {} : { dataDir: options.data }),
  })
  if (read.kind === 'invalid') {
    context.stderr.write(`sandbox: ${read.problems.join('\nsandbox: ')}\n`)
    return 2
  }
  const starter = process.ppid // before anybody hears that it listens, and may end it
  let running: Sandbox
  try {
    running = await startSandbox(read.settings)
  } catch (error) {
    context.stderr.write(`sandbox: could not start: ${error instanceof Error ? error.message || error.name : error}\n`)
    return 1
  }
  context.stderr.write(welcome(running, read.settings))
  if (options.json) context.stdout.write(`${JSON.stringify(announcement(running, read.settings))}\n`)
  await Promise.race([aborted(context.signal), orphaned(context, starter)])
  await running.close()
  return 0
}

/** For scripts. An address with a password in it is left out; that of an embedded PostgreSQL has none. */
function announcement({ url, port, databaseUrl }: Sandbox, settings: SandboxSettings) {
  return { url, port, clientId: settings.clientId, ...(isEmbedded(settings) ? { databaseUrl } : {}) }
}

function welcome({ url, changedSettings, databaseUrl }: Sandbox, settings: SandboxSettings): string {
  const lines = [
    `The sandbox listens at ${url}`,
    `  the five endpoints   ${url}/oauth/token, ${url}/api/v1/...`,
    `  their description    ${url}/openapi.json`,
    `  ledger and faults    ${url}/_sandbox/ledger, ${url}/_sandbox/faults`,
    'To send to it, set',
    `  SERVICE_BASE_URL=${url}`,
    `  SERVICE_AUTH_URL=${url}`,
    `  SERVICE_CLIENT_ID=${settings.clientId}`,
    "  SERVICE_CLIENT_SECRET=the sandbox's (SANDBOX_CLIENT_SECRET or SERVICE_CLIENT_SECRET, else sandbox-secret)",
  ]
  if (isEmbedded(settings)) {
    const lasts = settings.dataDir === undefined ? 'gone when it ends' : `kept in ${settings.dataDir}`
    lines.push(`Its data, ${lasts}`, `  psql '${databaseUrl}'`)
  }
  if (changedSettings.length > 0) {
    lines.push(
      `Changed at run time, before this start, and kept: ${changedSettings.join(', ')}`,
      `  back to the settings of this start: curl -X DELETE ${url}/_sandbox/settings`,
    )
  }
  return `${lines.join('\n')}\n`
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

const lookMs = 500

/** Resolves when `npx`, which started us, has ended: it does not hand on the signal that ends it. Without it never. */
function orphaned({ env, signal }: SandboxContext, starter: number): Promise<void> {
  if (env.npm_command !== 'exec') return new Promise(() => {})
  return new Promise((resolve) => {
    const looking = setInterval(() => {
      if (process.ppid === starter && !signal.aborted) return
      clearInterval(looking)
      resolve()
    }, lookMs)
  })
}

function help(): string {
  const settings = Object.entries(environment).map(([key, { names, secret }]) => {
    const field = optionsSchema.shape[key as keyof typeof environment]
    const fallback = optionsSchema.shape[key as keyof typeof environment].safeParse(undefined).data
    const shown = fallback === undefined ? '' : ` (${Array.isArray(fallback) ? fallback.join(',') : fallback})`
    const file = secret ? `\n      or ${names[0]}_FILE, a file that holds it` : ''
    return `  ${names.join(', else ')}\n      ${field.description ?? ''}${shown}${file}`
  })
  return `
What happens to a record is told by the record:
  data.field2 that begins with fail:CODE   the transaction ends failed with that code, such as fail:E003
  customerId that begins with UNKNOWN or X answered 400 E001 (orders: a uuid that begins with 00000000-0000-)

Settings, from the environment (defaults in parentheses):
${settings.join('\n')}

Examples:
  outboxd sandbox --embedded                          nothing but Node is needed
  outboxd sandbox --embedded --port 0 --json          for scripts: one line of JSON, when it listens
  outboxd sandbox --data ./sandbox                    goes on where it was

While it runs, /_sandbox/settings and /_sandbox/faults change most of this; docs/sandbox.md lists them.
`
}
