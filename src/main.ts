#!/usr/bin/env node
import { createRequire } from 'node:module'
import * as util from 'node:util'
import type { CommandModule } from './commands/terminal/command.ts'
import type { CommandContext } from './commands/terminal/context.ts'

const failed = 1
const wrongUsage = 2

const nodeRefusal: string = createRequire(import.meta.url)('../bin/nodeRefusal.cjs')()
if (nodeRefusal !== '') {
  process.stderr.write(nodeRefusal)
  process.exit(wrongUsage)
}

// Imported after the check of Node's version, because an old Node would end in a SyntaxError.
await import('./olderNodes.ts')
const { Command, CommanderError, InvalidArgumentError } = await import('commander')
const { findEnvironmentFile, findEnvFileThatImpliesMappingsDir, mergeEnvironmentFile } = await import(
  './commands/terminal/environment.ts'
)
const { explainError } = await import('./operations/explainError.ts')
const { configureCommand } = await import('./commands/terminal/command.ts')
const { tapStream } = await import('./commands/terminal/context.ts')
const { escapeControlInLines } = await import('./plainText.ts')
const { version } = await import('./version.ts')

const leaveMs = 2_000

const wanted = firstWord(process.argv.slice(2))
let given: CommandModule | null = null
let isDryRun = false

const messages: string[] = []
let hasData = false
/** True if --json is given. Guessed from all words before `--` until the command line is parsed. */
let wantsJson = /(^| )--json( |$)/.test(
  process.argv
    .slice(2)
    .join(' ')
    .replace(/(^| )-- .*/s, ''),
)

const crashListeners: ((error: unknown) => void)[] = []
const context: CommandContext = {
  env: {}, // filled when the command line is parsed
  stdin: process.stdin,
  stdout: tapStream(process.stdout, () => {
    hasData = true
  }),
  stderr: tapStream(process.stderr, (text) => messages.push(text)),
  signal: untilTerminated(),
  onCrash: (listener) => crashListeners.push(listener),
}

process.on('unhandledRejection', crash)
process.on('uncaughtException', crash)
process.stdout.on('error', nobodyReads)
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  // A message that a full disk refuses must not end the daemon.
  if (error.code === 'EPIPE') nobodyReads(error)
})

const program = new Command('outboxd')
  .description('Sends each record of a Postgres outbox once, to the cent, to a submit-then-poll service.')
  .version(version, '-v, --version', 'print the version')
  .option('--env-file <file>', 'also read variables from this file; variables of the process win', onlyOne)
  .hook('preAction', async (_, command) => {
    wantsJson = command.opts().json === true
    isDryRun = command.opts().dryRun === true
    context.envFile = findEnvironmentFile(program.opts().envFile, process.env)
    context.env = mergeEnvironmentFile(process.env, context.envFile)
    if (given?.withoutMappings) return
    const { explainUnusualMappingsDir } = await import('./config.ts')
    const note = explainUnusualMappingsDir(context.env, findEnvFileThatImpliesMappingsDir(context.env, context.envFile))
    if (note !== null) context.stderr.write(`${escapeControlInLines(note)}\n`)
  })
  .configureOutput({
    writeErr: (text) => context.stderr.write(text),
    outputError: (text, write) => write(text.replace(/^error: /, 'outboxd: ')),
  })
  .configureHelp({
    showGlobalOptions: false,
    sortSubcommands: false,
    styleTitle: (title) => util.styleText('bold', title, { validateStream: false }), // commander removes bold if the stream has no colours
  })
  .addHelpText(
    'after',
    '\nExit codes: 0 done, 1 failed or no answer, 2 usage or configuration, 3 nothing found or several, 4 not confirmed.',
  )

type Commands = Record<string, () => Promise<{ command: CommandModule }>>

/** In the order of `--help`. Loaded when needed, so that the daemon does not load the sandbox. */
const daily: Commands = {
  run: () => import('./commands/run.ts'),
  status: () => import('./commands/status.ts'),
  list: () => import('./commands/list.ts'),
  show: () => import('./commands/show.ts'),
  replay: () => import('./commands/replay.ts'),
  resolve: () => import('./commands/resolve.ts'),
  check: () => import('./commands/check.ts'),
  map: () => import('./commands/map.ts'),
}
const sometimes: Commands = {
  migrate: () => import('./commands/migrate.ts'),
  pause: () => import('./commands/pause.ts'),
  resume: () => import('./commands/resume.ts'),
  discard: () => import('./commands/discard.ts'),
  audit: () => import('./commands/audit.ts'),
  console: () => import('./commands/console.ts'),
  describe: () => import('./commands/describe.ts'),
  config: () => import('./commands/config.ts'),
  demo: () => import('./commands/demo.ts'),
  sandbox: () => import('./commands/sandbox.ts'),
  discover: () => import('./commands/discover.ts'),
}
const rarely: Commands = {
  recover: () => import('./commands/recover.ts'),
  health: () => import('./commands/health.ts'),
  adopt: () => import('./commands/adopt.ts'),
  capture: () => import('./commands/capture.ts'),
  prune: () => import('./commands/prune.ts'),
  erase: () => import('./commands/erase.ts'),
  completion: () => import('./commands/completion.ts'),
}
const groups: Record<string, Commands> = { 'Daily:': daily, 'Sometimes:': sometimes, 'Rarely:': rarely }
const commands: Commands = { ...daily, ...sometimes, ...rarely }

// `completion` describes all others, and the version needs none.
const isAlone = (Object.hasOwn(commands, wanted) && wanted !== 'completion') || /^(-v|--version)$/.test(wanted)
program.commandsGroup('Rarely:').helpCommand(true)
for (const [group, members] of Object.entries(groups)) {
  for (const [name, load] of Object.entries(members)) {
    if (isAlone && name !== wanted) continue
    const { command } = await load()
    if (name === wanted) given = command
    configureCommand(program.command(name).helpGroup(group), command).action((...words) =>
      finish(command.action(context, ...(words as never[]))),
    )
  }
}

for (const command of [program, ...program.commands]) command.exitOverride().showHelpAfterError('(--help tells more)')
try {
  await program.parseAsync(process.argv)
} catch (error) {
  process.exitCode = exitCodeOf(error)
  if (process.exitCode !== 0) printOutcome(process.exitCode)
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof CommanderError)) return complain(error)
  return error.exitCode === 0 ? 0 : wrongUsage
}

/** Node exits when all output is written. A half-open connection delays the exit by at most `leaveMs`. */
async function finish(command: Promise<number>): Promise<void> {
  try {
    process.exitCode = await command
  } catch (error) {
    process.exitCode = complain(error)
  }
  printOutcome(process.exitCode)
  setTimeout(() => process.exit(), leaveMs).unref()
}

/** With --json, prints the exit code and messages if the command printed no data: stdout is never empty. */
function printOutcome(exitCode: number): void {
  if (!wantsJson || hasData) return
  const lines = messages.join('').split('\n')
  context.stdout.write(`${JSON.stringify({ exitCode, messages: lines.filter((line) => line !== '') }, null, 2)}\n`)
}

/** If the output was closed, as by `| head`, ends a command that changes nothing. Other commands continue. */
function nobodyReads(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') crash(error)
  if (given?.onlyLooks) process.exit(0)
}

function complain(error: unknown): number {
  const { onlyLooks = false, options = [] } = given ?? {}
  const mayChange = !isDryRun && options.some(([flags]) => flags === '--dry-run')
  const { message, exitCode } = explainError(error, { name: wanted, onlyLooks, mayChange })
  context.stderr.write(`outboxd: ${escapeControlInLines(message)}\n`)
  return exitCode
}

function crash(error: unknown): never {
  try {
    for (const listener of crashListeners) listener(error)
  } catch {
    // The error that ends the process is still printed.
  }
  const exitCode = complain(error)
  printOutcome(exitCode)
  process.exit(exitCode)
}

/** Refuses a second --env-file, because one of the two would be ignored. */
function onlyOne(file: string, before: string | undefined): string {
  if (before !== undefined) throw new InvalidArgumentError(`${before} was given, too. Give only one file.`)
  return file
}

function firstWord([word = '', ...others]: string[]): string {
  if (word === '--env-file') return firstWord(others.slice(1))
  return word.startsWith('--env-file=') ? firstWord(others) : word
}

/** The first SIGTERM, SIGINT or SIGHUP aborts the signal. The second one ends the process at once. */
function untilTerminated(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(failed)
      controller.abort(new Error(signal))
    })
  }
  return controller.signal
}
