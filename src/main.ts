#!/usr/bin/env node
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import * as util from 'node:util'
import type { Command as Program } from 'commander'
import type { CommandContext } from './commands/terminal/context.ts'
import type { EnvironmentFile } from './commands/terminal/environmentFile.ts'

/** Two of the exit codes of README.md, "Commands". */
const failed = 1
const wrongUsage = 2

const nodeRefusal: string = createRequire(import.meta.url)('../bin/nodeRefusal.cjs')()
if (nodeRefusal !== '') {
  process.stderr.write(nodeRefusal)
  process.exit(wrongUsage)
}

// Loaded here and not above: a Node that is too old cannot read all of it, and would end in a SyntaxError of ours.
const { Command, CommanderError, InvalidArgumentError } = await import('commander')
const { readEnvironmentFile, withFile } = await import('./commands/terminal/environmentFile.ts')
const { explain } = await import('./operations/explainError.ts')
const { heard } = await import('./commands/terminal/context.ts')
const { escapeLines } = await import('./plainText.ts')
const { version } = await import('./version.ts')

const leaveMs = 2_000

/** What was said so far. */
const messages: string[] = []
let hasData = false
/** As the words of the command line have it, until the command is known; a word behind `--` is not an option. */
let wantsJson = /(^| )--json( |$)/.test(
  process.argv
    .slice(2)
    .join(' ')
    .replace(/(^| )-- .*/s, ''),
)

const crashListeners: ((error: unknown) => void)[] = []
const context: CommandContext = {
  env: {}, // read when the command line is
  stdin: process.stdin,
  stdout: heard(process.stdout, () => {
    hasData = true
  }),
  stderr: heard(process.stderr, (text) => messages.push(text)),
  signal: untilTerminated(),
  onReload: (listener) => process.on('SIGHUP', listener),
  onCrash: (listener) => crashListeners.push(listener),
}

process.on('unhandledRejection', crash)
process.on('uncaughtException', crash)
process.stdout.on('error', nobodyReads)
process.stderr.on('error', nobodyReads)

const program = new Command('outboxd')
  .description('Sends each record of a Postgres outbox once, to the cent, to a submit-then-poll service.')
  .version(version, '-v, --version', 'print the version')
  .option('--env-file <file>', 'read variables from it, too: those that are set for the process go before', onlyOne)
  .hook('preAction', async (_, command) => {
    wantsJson = command.opts().json === true
    context.envFile = environmentFile(program.opts().envFile)
    context.env = withFile(process.env, context.envFile)
    if (withoutMappings.includes(command.name())) return
    const { mappingsNote } = await import('./config.ts')
    const note = mappingsNote(context.env, impliedBy(context))
    if (note !== null) context.stderr.write(`${escapeLines(note)}\n`)
  })
  .configureOutput({
    writeErr: (text) => context.stderr.write(text),
    outputError: (text, write) => write(text.replace(/^error: /, 'outboxd: ')),
  })
  .configureHelp({
    showGlobalOptions: false,
    sortSubcommands: false,
    styleTitle: (title) => util.styleText('bold', title, { validateStream: false }), // commander leaves it out where there is no colour
  })
  .addHelpText('after', '\nExit codes: 0 done, 1 failed, 2 usage or configuration, 3 nothing found, 4 not confirmed.')

/** Each command's module is loaded when it is wanted: the daemon need not carry the sandbox and the demo in memory. */
const commands: Record<string, (command: Program) => Promise<Program>> = {
  async migrate(command) {
    const { describeMigrate, migrate } = await import('./commands/migrate.ts')
    return describeMigrate(command).action((options) => finish(migrate(context, options)))
  },
  async run(command) {
    const { describeRun, run } = await import('./commands/run.ts')
    return describeRun(command).action(() => finish(run(context)))
  },
  async status(command) {
    const { describeStatus, status } = await import('./commands/status.ts')
    return describeStatus(command).action((options) => finish(status(context, options)))
  },
  async list(command) {
    const { describeList, list } = await import('./commands/list.ts')
    return describeList(command).action((options) => finish(list(context, options)))
  },
  async show(command) {
    const { describeShow, show } = await import('./commands/show.ts')
    return describeShow(command).action((id, options) => finish(show(context, id, options)))
  },
  async replay(command) {
    const { describeReplay, replay } = await import('./commands/replay.ts')
    return describeReplay(command).action((ids, options) => finish(replay(context, ids, options)))
  },
  async resolve(command) {
    const { describeResolve, resolve } = await import('./commands/resolve.ts')
    return describeResolve(command).action((id, options) => finish(resolve(context, id, options)))
  },
  async discard(command) {
    const { describeDiscard, discard } = await import('./commands/discard.ts')
    return describeDiscard(command).action((ids, options) => finish(discard(context, ids, options)))
  },
  async pause(command) {
    const { describePause, pause } = await import('./commands/pause.ts')
    return describePause(command).action((options) => finish(pause(context, options)))
  },
  async resume(command) {
    const { describeResume, resume } = await import('./commands/resume.ts')
    return describeResume(command).action((options) => finish(resume(context, options)))
  },
  async reload(command) {
    const { describeReload, reload } = await import('./commands/reload.ts')
    return describeReload(command).action((options) => finish(reload(context, options)))
  },
  async check(command) {
    const { describeCheck, check } = await import('./commands/check.ts')
    return describeCheck(command).action((options) => finish(check(context, options)))
  },
  async discover(command) {
    const { describeDiscover, discover } = await import('./commands/discover.ts')
    return describeDiscover(command).action((options) => finish(discover(context, options)))
  },
  async adopt(command) {
    const { describeAdopt, adopt } = await import('./commands/adopt.ts')
    return describeAdopt(command).action((options) => finish(adopt(context, options)))
  },
  async recover(command) {
    const { describeRecover, recover } = await import('./commands/recover.ts')
    return describeRecover(command).action((options) => finish(recover(context, options)))
  },
  async prune(command) {
    const { describePrune, prune } = await import('./commands/prune.ts')
    return describePrune(command).action((options) => finish(prune(context, options)))
  },
  async audit(command) {
    const { describeAudit, audit } = await import('./commands/audit.ts')
    return describeAudit(command).action((options) => finish(audit(context, options)))
  },
  async erase(command) {
    const { describeErase, erase } = await import('./commands/erase.ts')
    return describeErase(command).action((options) => finish(erase(context, options)))
  },
  async describe(command) {
    const { describeDescribe, describe } = await import('./commands/describe.ts')
    return describeDescribe(command).action((table, options) => finish(describe(context, table, options)))
  },
  async map(command) {
    const { describeMap, map } = await import('./commands/map.ts')
    return describeMap(command).action((file, options) => finish(map(context, file, options)))
  },
  async sandbox(command) {
    const { describeSandbox, sandbox } = await import('./commands/sandbox.ts')
    return describeSandbox(command).action((options) => finish(sandbox(context, options)))
  },
  async console(command) {
    const { describeConsole, serveConsole } = await import('./commands/console.ts')
    return describeConsole(command).action((options) => finish(serveConsole(context, options)))
  },
  async demo(command) {
    const { describeDemo, demo } = await import('./commands/demo.ts')
    return describeDemo(command).action((options) => finish(demo(context, options)))
  },
  async config(command) {
    const { describeConfig, config } = await import('./commands/config.ts')
    return describeConfig(command).action((options) => finish(config(context, options)))
  },
  async completion(command) {
    const { completion, describeCompletion } = await import('./commands/completion.ts')
    return describeCompletion(command).action((shell) => finish(completion(context, program, shell)))
  },
  async man(command) {
    const { describeMan, man } = await import('./commands/man.ts')
    return describeMan(command).action(() => finish(man(context, program)))
  },
}
/** These tell of all the others. */
const ofAll = ['completion', 'man']
/** These read no mapping files, or only those that they are about to write. */
const withoutMappings = ['describe', 'discover', 'sandbox', 'demo', ...ofAll]
/** Nothing is lost where these end because nobody reads on. */
const readOnly = ['status', 'list', 'show', 'audit', 'check', 'map', 'config', 'completion', 'man']

const wanted = firstWord(process.argv.slice(2))
const isAlone = Object.hasOwn(commands, wanted) && !ofAll.includes(wanted)
for (const name of isAlone ? [wanted] : Object.keys(commands)) {
  await commands[name]?.(program.command(name))
}

for (const command of [program, ...program.commands]) command.exitOverride().showHelpAfterError('(--help tells more)')
try {
  // What -V printed before 0.3, and still does.
  await program.parseAsync(process.argv.map((word, at) => (at === 2 && word === '-V' ? '-v' : word)))
} catch (error) {
  process.exitCode = error instanceof CommanderError ? (error.exitCode === 0 ? 0 : wrongUsage) : complain(error)
  if (process.exitCode !== 0) printOutcome(process.exitCode)
}

/** Leaves with the command's code, once what it wrote is out; a half-open connection does not hold it back for long. */
async function finish(command: Promise<number>): Promise<void> {
  try {
    process.exitCode = await command
  } catch (error) {
    process.exitCode = complain(error)
  }
  printOutcome(process.exitCode)
  setTimeout(() => process.exit(), leaveMs).unref()
}

/** Prints an object if --json was given and nothing else was printed: a program that parses stdout never finds it empty. */
function printOutcome(exitCode: number): void {
  if (!wantsJson || hasData) return
  const lines = messages.join('').split('\n')
  context.stdout.write(`${JSON.stringify({ exitCode, messages: lines.filter((line) => line !== '') }, null, 2)}\n`)
}

/** As with `| head`: what only reads has done what was wanted, what changes something goes on in silence. */
function nobodyReads(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') crash(error)
  if (readOnly.includes(wanted)) process.exit(0)
}

/** Says what went wrong. @returns the exit code */
function complain(error: unknown): number {
  const { message, exitCode } = explain(error, wanted)
  context.stderr.write(`outboxd: ${escapeLines(message)}\n`)
  return exitCode
}

function crash(error: unknown): never {
  for (const listener of crashListeners) listener(error)
  const exitCode = complain(error)
  printOutcome(exitCode)
  process.exit(exitCode)
}

/** The file of variables that was named; in development `.env`, where there is one. @throws ConfigInvalid */
function environmentFile(named: string | undefined): EnvironmentFile | null {
  if (named !== undefined) return readEnvironmentFile(named)
  return process.env.NODE_ENV !== 'production' && existsSync('.env') ? readEnvironmentFile('.env') : null
}

/** The file of variables whose neighbour is the folder of mappings; null if the process itself, or nothing, names the folder. */
function impliedBy({ env, envFile }: CommandContext): string | null {
  return envFile?.impliesMappings && env.MAPPINGS_DIR === envFile.values.MAPPINGS_DIR ? envFile.path : null
}

/** Of two files one would be ignored without a word. */
function onlyOne(file: string, before: string | undefined): string {
  if (before !== undefined) throw new InvalidArgumentError(`It is the second, after ${before}: give one file.`)
  return file
}

/** What comes after the options that hold for every command: the command, as a rule. */
function firstWord([word = '', ...others]: string[]): string {
  if (word === '--env-file') return firstWord(others.slice(1))
  return word.startsWith('--env-file=') ? firstWord(others) : word
}

/** Aborts on the first SIGTERM or SIGINT; the second leaves at once. */
function untilTerminated(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(failed)
      controller.abort(new Error(signal))
    })
  }
  return controller.signal
}
