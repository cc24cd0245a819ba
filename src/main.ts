#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { config as readDotenv } from 'dotenv'
import { check, describeCheck } from './commands/check.ts'
import { config, describeConfig } from './commands/config.ts'
import type { CommandContext } from './commands/context.ts'
import { demo, describeDemo } from './commands/demo.ts'
import { describeDiscard, discard } from './commands/discard.ts'
import { explain } from './commands/explain.ts'
import { describeList, list } from './commands/list.ts'
import { describeMap, map } from './commands/map.ts'
import { describeMigrate, migrate } from './commands/migrate.ts'
import { describePause, pause } from './commands/pause.ts'
import { describeReplay, replay } from './commands/replay.ts'
import { describeResolve, resolve } from './commands/resolve.ts'
import { describeResume, resume } from './commands/resume.ts'
import { describeRun, run } from './commands/run.ts'
import { describeSandbox, sandbox } from './commands/sandbox.ts'
import { describeShow, show } from './commands/show.ts'
import { describeStatus, status } from './commands/status.ts'
import { version } from './version.ts'

/** Exit codes of design.md, section 10. */
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

describeMigrate(program.command('migrate')).action((options) => finish(migrate(context, options)))
describeRun(program.command('run')).action(() => finish(run(context)))
describeStatus(program.command('status')).action((options) => finish(status(context, options)))
describeList(program.command('list')).action((options) => finish(list(context, options)))
describeShow(program.command('show')).action((id, options) => finish(show(context, id, options)))
describeReplay(program.command('replay')).action((ids, options) => finish(replay(context, ids, options)))
describeResolve(program.command('resolve')).action((id, options) => finish(resolve(context, id, options)))
describeDiscard(program.command('discard')).action((ids, options) => finish(discard(context, ids, options)))
describePause(program.command('pause')).action((options) => finish(pause(context, options)))
describeResume(program.command('resume')).action((options) => finish(resume(context, options)))
describeCheck(program.command('check')).action((options) => finish(check(context, options)))
describeMap(program.command('map')).action((file, options) => finish(map(context, file, options)))
describeSandbox(program.command('sandbox')).action((options) => finish(sandbox(context, options)))
describeDemo(program.command('demo')).action((options) => finish(demo(context, options)))
describeConfig(program.command('config')).action((options) => finish(config(context, options)))

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
  const { words, exitCode } = explain(error)
  process.stderr.write(`outboxd: ${words}\n`)
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
