#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { config as readDotenv } from 'dotenv'
import type { CommandContext } from './cli/context.ts'
import { explain } from './cli/explainError.ts'
import { version } from './version.ts'

/** Two of the exit codes of README.md, "Commands". */
const failed = 1
const wrongUsage = 2

const leaveMs = 2_000

const crashListeners: ((error: unknown) => void)[] = []
const context: CommandContext = {
  env: environment(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: untilTerminated(),
  onReload: (listener) => process.on('SIGHUP', listener),
  onCrash: (listener) => crashListeners.push(listener),
}

process.on('unhandledRejection', crash)
process.on('uncaughtException', crash)

const program = new Command('outboxd')
  .description('Sends each record of a Postgres outbox once, to the cent, to a submit-then-poll service.')
  .version(version)
  .configureHelp({ showGlobalOptions: false, sortSubcommands: false })
  .addHelpText('after', '\nExit codes: 0 done, 1 failed, 2 usage or configuration, 3 nothing found, 4 not confirmed.')

/** Each command's module is loaded when it is wanted: the daemon need not carry the sandbox and the demo in memory. */
const commands: Record<string, (command: Command) => Promise<Command>> = {
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
  async check(command) {
    const { describeCheck, check } = await import('./commands/check.ts')
    return describeCheck(command).action((options) => finish(check(context, options)))
  },
  async adopt(command) {
    const { describeAdopt, adopt } = await import('./commands/adopt.ts')
    return describeAdopt(command).action((options) => finish(adopt(context, options)))
  },
  async recover(command) {
    const { describeRecover, recover } = await import('./commands/recover.ts')
    return describeRecover(command).action((options) => finish(recover(context, options)))
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
  async demo(command) {
    const { describeDemo, demo } = await import('./commands/demo.ts')
    return describeDemo(command).action((options) => finish(demo(context, options)))
  },
  async config(command) {
    const { describeConfig, config } = await import('./commands/config.ts')
    return describeConfig(command).action((options) => finish(config(context, options)))
  },
}
const wanted = process.argv[2] ?? ''
for (const name of Object.hasOwn(commands, wanted) ? [wanted] : Object.keys(commands)) {
  await commands[name]?.(program.command(name))
}

for (const command of [program, ...program.commands]) command.exitOverride().showHelpAfterError('(--help tells more)')
try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  process.exitCode = error.exitCode === 0 ? 0 : wrongUsage
}

/** Leaves with the command's code, once what it wrote is out; a half-open connection does not hold it back for long. */
async function finish(command: Promise<number>): Promise<void> {
  try {
    process.exitCode = await command
  } catch (error) {
    process.exitCode = complain(error)
  }
  setTimeout(() => process.exit(), leaveMs).unref()
}

/** Says what went wrong. @returns the exit code */
function complain(error: unknown): number {
  const { message, exitCode } = explain(error)
  process.stderr.write(`outboxd: ${message}\n`)
  return exitCode
}

function crash(error: unknown): never {
  for (const listener of crashListeners) listener(error)
  process.exit(complain(error))
}

/** The environment's variables; in development those of a .env file, too, where they are not set. */
function environment(): Record<string, string | undefined> {
  const fromFile: Record<string, string> = {}
  if (process.env.NODE_ENV !== 'production') readDotenv({ processEnv: fromFile, quiet: true })
  return { ...fromFile, ...process.env }
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
