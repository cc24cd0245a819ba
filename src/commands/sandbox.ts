import { readFileSync } from 'node:fs'
import { settingChoices } from '../sandbox/settingChoices.ts'
import {
  type Borrowed,
  isEmbedded,
  isEveryInterface,
  optionsSchema,
  readEnvironment,
  type Sandbox,
  SettingsWrong,
  settingVariables,
  startSandbox,
} from '../sandbox/startSandbox.ts'
import { FilesInvalid } from '../yaml/yamlDocument.ts'
import { abortWhenNpxEnds } from './terminal/abortWhenNpxEnds.ts'
import { defineCommand } from './terminal/command.ts'
import { untilAborted } from './terminal/context.ts'

type Settings = Extract<ReturnType<typeof readEnvironment>, { kind: 'value' }>['settings']

export const command = defineCommand({
  description: 'run the service itself as a test environment, on loopback',
  options: [
    ['--port <number>', 'port to listen on; 0 takes any free one (default: SANDBOX_PORT, else 8080)', { read: Number }],
    ['--host <address>', 'address to listen on (default: SANDBOX_HOST, else 127.0.0.1)'],
    ['--seed <number>', 'makes ids, processing times and their order repeatable (default: SANDBOX_SEED)'],
    [
      '--clock <time>',
      "a fixed time, until /_sandbox/clock moves it on (default: SANDBOX_CLOCK, else the system's clock)",
    ],
    ['--insecure-defaults', 'listen beyond loopback although the default secret is public'],
    ['--scenario <file>', 'file with settings, faults, scripts and expectations (default: SANDBOX_SCENARIO)'],
    ['--embedded', 'start a PostgreSQL in a temporary folder, removed at the end'],
    ['--data <folder>', 'as --embedded, but keep the data in this folder for the next start'],
    ['--json', 'print one line of JSON: url, port, clientId, databaseUrl of an embedded PostgreSQL'],
  ],
  help: help(),
  async action(context, options): Promise<number> {
    const read = readEnvironment(context.env, (path) => readFileSync(path, 'utf8'), {
      ...(options.port === undefined ? {} : { port: options.port }),
      ...(options.host === undefined ? {} : { host: options.host }),
      ...(options.seed === undefined ? {} : { seed: Number(options.seed) }),
      ...(options.scenario === undefined ? {} : { scenario: options.scenario }),
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      ...(options.insecureDefaults ? { insecureDefaults: true } : {}),
      ...(options.embedded ? { embedded: true } : {}),
      ...(options.data === undefined ? {} : { dataDir: options.data }),
    })
    if (read.kind === 'invalid') {
      context.stderr.write(`outboxd: ${read.problems.join('\noutboxd: ')}\n`)
      return 2
    }
    context.stderr.write(borrowedText(read.borrowed, read.settings))
    const signal = abortWhenNpxEnds(context.signal, context.env)
    let running: Sandbox | undefined
    try {
      running = await startUnlessTold(read.settings, signal)
    } catch (error) {
      if (error instanceof FilesInvalid) {
        context.stderr.write(`outboxd: the scenario is wrong\n${error.message}\n`)
        return 2
      }
      if (error instanceof SettingsWrong) {
        context.stderr.write(`outboxd: ${error.problems.join('\noutboxd: ')}\n`)
        return 2
      }
      context.stderr.write(
        `outboxd: the sandbox could not start: ${error instanceof Error ? error.message || error.name : error}\n`,
      )
      return 1
    }
    if (running === undefined) return 0
    context.stderr.write(welcome(running, read.settings))
    if (options.json) context.stdout.write(`${JSON.stringify(announcement(running, read.settings))}\n`)
    const ending = await Promise.race([running.failed, untilAborted(signal)])
    await running.close()
    if (ending === undefined) return 0
    context.stderr.write(`sandbox: ended: ${ending}\n`)
    return 1
  },
})

/** For scripts. Leaves out the address of a foreign database, because it holds a password. */
function announcement({ url, port, databaseUrl, clientIds }: Sandbox, settings: Settings) {
  return { url, port, clientId: clientIds[0], ...(isEmbedded(settings) ? { databaseUrl } : {}) }
}

/** Warns about each variable of the daemon that is used, because this may be a production shell. */
function borrowedText(borrowed: readonly Borrowed[], settings: Settings): string {
  const effects: Partial<Record<Borrowed['setting'], string>> = {
    databaseUrl: `the schemas sandbox and sandbox_queue are created in ${databaseOf(settings.databaseUrl)}`,
    clientId: 'tokens are issued to this client_id',
    clientSecret: 'every program with this client_secret gets tokens',
  }
  return borrowed
    .filter(({ setting }) => setting !== 'databaseUrl' || !isEmbedded(settings))
    .map(
      ({ setting, from, own }) =>
        `sandbox: ATTENTION: ${from} is used, because ${own} is not set: ${effects[setting]}\n`,
    )
    .join('')
}

function databaseOf(url = ''): string {
  if (!URL.canParse(url)) return 'its database'
  const { hostname, port, pathname } = new URL(url)
  return `the database ${pathname.slice(1) || 'of its user'} at ${hostname || 'this machine'}${port && `:${port}`}`
}

function welcome({ url, port, changedSettings, databaseUrl, clientIds }: Sandbox, settings: Settings): string {
  const { host, allowedAddresses } = settings
  const everywhere = [
    `The sandbox listens on all interfaces (${host}), port ${port}; from this machine it is`,
    `  ${url}`,
    `  others may call the API from ${allowedAddresses.join(', ')} (SANDBOX_ALLOWED_ADDRESSES)`,
  ]
  const lines = [
    ...(isEveryInterface(host) ? everywhere : [`The sandbox listens at ${url}`]),
    `  the five endpoints   ${url}/oauth/token, ${url}/api/v1/...`,
    `  their description    ${url}/openapi.json`,
    `  ledger and faults    ${url}/_sandbox/ledger, ${url}/_sandbox/faults`,
    'To send to it, set',
    `  SERVICE_BASE_URL=${url}`,
    `  SERVICE_AUTH_URL=${url}`,
    `  SERVICE_CLIENT_ID=${clientIds.join(', or ')}`,
    clientIds.length > 1 || clientIds[0] !== settings.clientId
      ? '  SERVICE_CLIENT_SECRET=its secret in SANDBOX_CLIENTS, or in the scenario'
      : "  SERVICE_CLIENT_SECRET=the sandbox's (SANDBOX_CLIENT_SECRET or SERVICE_CLIENT_SECRET, else sandbox-secret)",
  ]
  if (settings.controlToken !== undefined) {
    lines.push('Requests to /_sandbox/ need the token: curl -H "Authorization: Bearer $SANDBOX_CONTROL_TOKEN"')
  }
  if (isEmbedded(settings)) {
    const lasts = settings.dataDir === undefined ? 'removed when it ends' : `kept in ${settings.dataDir}`
    lines.push(`Its data, ${lasts}`, `  psql '${databaseUrl}'`)
  }
  if (changedSettings.length > 0) {
    lines.push(
      `Settings changed before this start, still in use: ${changedSettings.join(', ')}`,
      `  to undo them: curl -X DELETE ${url}/_sandbox/settings`,
    )
  }
  return `${lines.join('\n')}\n`
}

/**
 * Starting may wait for the lock of another sandbox, which a signal ends.
 * @returns undefined if it was aborted
 */
async function startUnlessTold(settings: Settings, signal: AbortSignal): Promise<Sandbox | undefined> {
  const starting = startSandbox(settings)
  const running = await Promise.race([starting, untilAborted(signal).then(() => undefined)])
  if (running === undefined) {
    void starting.then(
      (late) => late.close(),
      () => {},
    )
  }
  return running
}

function help(): string {
  const settings = Object.entries(settingVariables).map(([key, { names, secret }]) => {
    const field = optionsSchema.shape[key as keyof typeof settingVariables]
    const fallback = field.safeParse(undefined).data
    const others = settingChoices(field).filter((each) => each !== fallback)
    const values = [fallback, ...others].filter((each) => each !== undefined && each !== null).join(', ')
    const shown = values === '' ? '' : ` (${values})`
    const file = secret ? `\n      or ${names[0]}_FILE, a file that holds it` : ''
    return `  ${names.join(', else ')}\n      ${field.description ?? ''}${shown}${file}`
  })
  return `The record decides what happens to it:
  data.field2 that begins with fail:CODE   the transaction ends failed with that code, such as fail:E003
  customerId that begins with UNKNOWN or X gets 400 E001 (orders: a uuid that begins with 00000000-0000-)

Settings, from the environment (in parentheses the default, then other values):
${settings.join('\n')}

Examples:
  outboxd sandbox --embedded                          nothing but Node is needed
  outboxd sandbox --embedded --port 0 --json          for scripts: one line of JSON, when it listens
  outboxd sandbox --data ./sandbox                    goes on where it was
  outboxd sandbox --embedded --scenario test.yaml     does what the file says; POST /_sandbox/verify checks it

While it runs, /_sandbox/settings and /_sandbox/faults change most of this; docs/start/sandbox.md lists them.
`
}
