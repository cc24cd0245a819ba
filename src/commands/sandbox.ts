import { readFileSync } from 'node:fs'
import { isWildcardAddress } from '../sandbox/gate/addresses.ts'
import { allowedWordsOfSetting } from '../sandbox/interfaceGapSettings.ts'
import { readSettingsFromEnvironment, settingVariables } from '../sandbox/readEnvironment.ts'
import { isEmbedded, type SandboxSettings } from '../sandbox/sandboxSettings.ts'
import { SettingsWrong } from '../sandbox/settingsWrong.ts'
import { type Sandbox, startSandbox } from '../sandbox/startSandbox.ts'
import { FilesInvalid } from '../yaml/yamlDocument.ts'
import { abortWhenNpxEnds } from './terminal/abortWhenNpxEnds.ts'
import { defineCommand } from './terminal/command.ts'
import { untilAborted } from './terminal/context.ts'

export const command = defineCommand({
  withoutMappings: true,
  description: 'run a test environment that behaves like the service, on loopback',
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
    const { json, data, seed, ...others } = options
    const given = { ...others, dataDir: data, seed: seed && Number(seed) }
    const read = readSettingsFromEnvironment(context.env, (path) => readFileSync(path, 'utf8'), given)
    if (read.kind === 'invalid') {
      context.stderr.write(`outboxd: ${read.problems.join('\noutboxd: ')}\n`)
      return 2
    }
    for (const { from, own } of read.borrowed)
      context.stderr.write(`sandbox: ATTENTION: ${from} is used, because ${own} is not set\n`)
    const signal = abortWhenNpxEnds(context.signal, context.env)
    let running: Sandbox | undefined
    try {
      running = await startUnlessTold(read.settings, signal)
    } catch (error) {
      const message = error instanceof Error ? error.message || error.name : error
      context.stderr.write(`outboxd: the sandbox could not start: ${message}\n`)
      return error instanceof FilesInvalid || error instanceof SettingsWrong ? 2 : 1
    }
    if (running === undefined) return 0
    context.stderr.write(welcome(running, read.settings))
    if (json) context.stdout.write(`${JSON.stringify(announcement(running, read.settings))}\n`)
    const ending = await Promise.race([running.failed, untilAborted(signal)])
    await running.close()
    if (ending === undefined) return 0
    context.stderr.write(`sandbox: ended: ${ending}\n`)
    return 1
  },
})

/** Leaves out the address of a database that is not embedded, because the address holds a password. */
function announcement({ url, port, databaseUrl, clientIds }: Sandbox, settings: SandboxSettings) {
  return { url, port, clientId: clientIds[0], ...(isEmbedded(settings) ? { databaseUrl } : {}) }
}

function welcome({ url, port, changedSettings, databaseUrl, clientIds }: Sandbox, settings: SandboxSettings): string {
  const { host, allowedAddresses, controlToken, dataDir } = settings
  const everywhere = `listens on all interfaces (${host}), port ${port}; from this machine it is
  ${url}
  others may call the API from ${allowedAddresses.join(', ')} (SANDBOX_ALLOWED_ADDRESSES)`
  const lines = [
    `The sandbox ${isWildcardAddress(host) ? everywhere : `listens at ${url}`}`,
    `  its description      ${url}/openapi.json`,
    `  ledger and faults    ${url}/_sandbox/ledger, ${url}/_sandbox/faults`,
    'To send to it, set',
    `  SERVICE_BASE_URL=${url}`,
    `  SERVICE_AUTH_URL=${url}`,
    `  SERVICE_CLIENT_ID=${clientIds.join(', or ')}`,
    '  SERVICE_CLIENT_SECRET=the secret of that client in SANDBOX_CLIENT_SECRET, SANDBOX_CLIENTS or the scenario, else sandbox-secret',
  ]
  if (controlToken !== undefined)
    lines.push('Requests to /_sandbox/ need the token: curl -H "Authorization: Bearer $SANDBOX_CONTROL_TOKEN"')
  if (isEmbedded(settings))
    lines.push(`Its data, ${dataDir ? `kept in ${dataDir}` : 'removed when it ends'}`, `  psql '${databaseUrl}'`)
  if (changedSettings.length > 0)
    lines.push(
      `Settings changed before this start, still in use: ${changedSettings.join(', ')}`,
      `  to undo them: curl -X DELETE ${url}/_sandbox/settings`,
    )
  return `${lines.join('\n')}\n`
}

/**
 * Waits until no other sandbox has locked the database.
 * @returns undefined if the signal was aborted
 */
async function startUnlessTold(settings: SandboxSettings, signal: AbortSignal): Promise<Sandbox | undefined> {
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
  const settings = Object.values(settingVariables).map(({ names, schema: field, secret }) => {
    const fallback = field.safeParse(undefined).data
    const others = allowedWordsOfSetting(field).filter((each) => each !== fallback)
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
  outboxd sandbox --data ./sandbox                    continues with the data of its last run
  outboxd sandbox --embedded --scenario test.yaml     does what the file says; POST /_sandbox/verify checks it

While it runs, /_sandbox/settings and /_sandbox/faults change most of this; docs/start/sandbox.md lists them.
`
}
