import { spawn } from 'node:child_process'
import { platform } from 'node:os'
import { systemClock } from '../clock.ts'
import { readConfig, readConsoleConfig, readDatabaseConfig } from '../config.ts'
import { createConcurrencyLimit } from '../console/bounds.ts'
import { createConsole } from '../console/createConsole.ts'
import { consoleErrorMessage } from '../console/errors.ts'
import { readConsoleAccess, type SignInMethod } from '../console/guard/access.ts'
import { hashPassword } from '../console/guard/passwordHash.ts'
import { isLoopback } from '../console/guard/refuseForeign.ts'
import type { Installation } from '../console/html/layout.ts'
import { shareRecentRead } from '../console/parts.ts'
import { readSettings } from '../ledger/settings.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import { AddressUnusable } from '../observe/httpServer.ts'
import { askServiceForTransaction, type TransactionAnswer } from '../operations/askForTransaction.ts'
import { explainError } from '../operations/explainError.ts'
import { escapeControlInLines } from '../plainText.ts'
import { defineCommand, type OptionsOf, wholeNumberParser } from './terminal/command.ts'
import { askForSecret } from './terminal/confirm.ts'
import {
  type CommandContext,
  exitCodes,
  printUsageErrors,
  requestWaitOptions,
  untilAborted,
} from './terminal/context.ts'
import { actorFromOptions, findActorProblems, openDatabasesOf } from './terminal/operator.ts'

const portDefault = 9465
const hostDefault = '127.0.0.1'
const passwordCharsMin = 12
const passwordBytesMax = 1_000

/** Shared by all viewers, so a wait for a lock is short. */
const sessions = { connections: 6, lockMs: 2_500 }

/** Leaves connections for other pages, because a search takes up to ten seconds. */
const searchesAtOnce = 2

export const command = defineCommand({
  description: 'serve web pages that do what the commands do',
  options: [
    [
      '--port <number>',
      'port to listen on; 0 takes a free one',
      { read: wholeNumberParser(0, 65_535), default: portDefault },
    ],
    [
      '--host <address>',
      'address to listen on; beyond loopback only with a password or trusted proxy',
      { default: hostDefault },
    ],
    ['--read-only', 'show everything, change nothing'],
    ['--open', 'open the console in your browser'],
    ['--as <name>', 'your name for the log, if there is no sign-in (default: your user name)'],
    ['--hash-password', 'read a password, print the line for CONSOLE_PASSWORD_FILE, and exit'],
    ['--json', 'print one line of JSON when the console listens: url, port'],
  ],
  help: `The console needs the URLs of the databases, but no running daemon. On loopback every user of this machine may look and change, unless you
set CONSOLE_PASSWORD_FILE. Beyond loopback it requires that password, or a proxy that signs users in (CONSOLE_TRUST_HEADER and
CONSOLE_TRUST_PROXY): see docs/run/console.md. Ctrl-C ends it.

Examples:
  outboxd console --open
  outboxd console --read-only --port 9466         to show it to others
  outboxd console --hash-password > password      then CONSOLE_PASSWORD_FILE=password outboxd console --host 10.0.0.5
  ssh -L 9465:localhost:9465 bastion outboxd console    from your desk, without a password`,
  async action(context, options): Promise<number> {
    if (options.hashPassword) return printHash(context)
    const { host, port } = options
    const config = readDatabaseConfig(context.env)
    const consoleConfig = readConsoleConfig(context.env)
    const read = readConsoleAccess(host, consoleConfig)
    const problems = ['problems' in read ? read.problems : [], findActorProblems(options)].flat()
    if ('problems' in read || problems.length > 0) return printUsageErrors(context, problems)
    const { who } = actorFromOptions(context, options)
    const say = (line: string) => void context.stderr.write(`outboxd: ${escapeControlInLines(line)}\n`)
    const installation: Installation = { name: '', colour: consoleConfig.colour, counts: null }
    await using opened = new AsyncDisposableStack()
    // Opens at the first use, and again after a failure.
    const databases = shareRecentRead(systemClock, Number.POSITIVE_INFINITY, async () => {
      const open = opened.use(await openDatabasesOf(config, sessions))
      installation.name = (await readSettings(open.ledger))?.INSTALLATION_NAME ?? ''
      return open
    })
    await using app = await createConsole(
      {
        ...{ databases, config, installation, clock: systemClock, say },
        searches: createConcurrencyLimit(searchesAtOnce),
        askService: (asked) => askService(context, asked),
      },
      { ...read, host, whoWithoutSignIn: who, isReadOnly: options.readOnly ?? false },
    )
    const url = await listen(() => app.listen({ host, port }), options)
    context.stderr.write(welcome(url, options, read.access))
    if (options.json) context.stdout.write(`${JSON.stringify({ url, port: Number(new URL(url).port) })}\n`)
    await databases().catch((error: unknown) => say(consoleErrorMessage(error))) // pages show this error, too, and try again
    if (options.open) openInBrowser(url, say)
    await untilAborted(context.signal)
    return exitCodes.done
  },
})

type ConsoleOptions = OptionsOf<typeof command>

/** Reads the service's credentials here, because the console starts without them. */
async function askService(context: CommandContext, transaction: TransactionRef): Promise<TransactionAnswer> {
  try {
    return await askServiceForTransaction(readConfig(context.env), transaction, {
      ...requestWaitOptions(context),
      goesFirst: true,
    })
  } catch (error) {
    return { kind: 'silent', message: `the service cannot be asked: ${explainError(error).message}` }
  }
}

async function listen(begin: () => Promise<string>, { host, port }: ConsoleOptions): Promise<string> {
  try {
    return await begin()
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code
    const message = `cannot listen on ${host} port ${port} (${why}). Choose a different one with --port or --host`
    throw new AddressUnusable(message, { cause })
  }
}

function welcome(url: string, { host, readOnly }: ConsoleOptions, { kind }: SignInMethod): string {
  const changes = readOnly ? ', read-only' : ''
  const asked = { open: '', password: ' It asks for the password.', proxy: ' It answers only its proxy.' }[kind]
  const clear =
    kind === 'password' && !isLoopback(host)
      ? 'Passwords and pages are not encrypted. Put a proxy with TLS in front of the console (CONSOLE_TRUST_PROXY).\n'
      : ''
  return `The console is at ${url}${changes}. Ctrl-C ends it.${asked}\n${clear}`
}

async function printHash(context: CommandContext): Promise<number> {
  const password = await askForSecret(context, 'The password that operators will share: ')
  const problem = passwordProblem(password)
  if (problem !== null) return printUsageErrors(context, [problem])
  context.stdout.write(`${await hashPassword(password)}\n`)
  return exitCodes.done
}

function passwordProblem(password: string): string | null {
  const count = [...password].length
  if (count < passwordCharsMin)
    return `the password has ${count} characters: give ${passwordCharsMin} or more, such as four unrelated words`
  // The sign-in form refuses longer passwords.
  const bytes = Buffer.byteLength(password)
  if (bytes > passwordBytesMax) return `the password has ${bytes} bytes: give at most ${passwordBytesMax}`
  return /[\r\n\0]/.test(password) ? 'the password has more than one line: give one line' : null
}

const openers: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Returns before the browser has started. */
function openInBrowser(url: string, say: (line: string) => void): void {
  const [command, ...args] = openers[platform()] ?? ['xdg-open']
  const opening = spawn(command, [...args, url], { stdio: 'ignore', detached: true })
  const failed = () => say(`cannot open a browser (${command}): open ${url} yourself`)
  opening.once('error', failed)
  opening.once('exit', (code) => (code === 0 ? undefined : failed()))
  opening.unref()
}
