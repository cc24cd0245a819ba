import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import type { Fleet } from './fleet.ts'
import type { ProgramCopy } from './programCopy.ts'

/** A signal that a daemon sends itself at one of its statements. */
export interface Strike {
  /** Counts the statements on the way of a record that the daemon makes from now on, from 1. */
  nth: number
  /** `before` the statement leaves, or `after` its answer has come and before the caller sees that answer. */
  when: 'before' | 'after'
  signal: 'SIGKILL' | 'SIGSTOP'
}

/** A moment at which a daemon has killed itself. */
export interface Moment extends Pick<Strike, 'when'> {
  statement: string
}

/**
 * The statements that daemons make. Nothing lists them by hand: each daemon writes those that it makes into a folder.
 *
 *     seen               a line for each statement, in the order in which they came
 *     plans/PID          the next strike of a daemon, which reads it at SIGUSR2
 *     idle               the statements that daemons make without any record. All others are on the way of a record
 *     armed              while it exists, daemons kill themselves at each statement on the way of a record
 *     struck/HASH WHEN   text of a statement at which a daemon has done so
 */
export class Statements implements AsyncDisposable {
  readonly #folder: string
  /** Lets a daemon write down its statements, and strike. */
  readonly env: Record<string, string>
  #idle: ReadonlySet<string> = new Set()

  constructor(folder: string, program: Pick<ProgramCopy, 'dir'>) {
    this.#folder = folder
    this.env = { NODE_OPTIONS: `--import ${join(program.dir, 'strikeAtStatements.ts')}`, CRASH_STATEMENTS: folder }
  }

  /** Takes the statements that have come until now for those of idle daemons. */
  async endIdle(): Promise<void> {
    this.#idle = new Set(await this.#readSeen())
    // Daemons must not read half a file.
    await writeFile(this.#path('unfinished'), JSON.stringify([...this.#idle]))
    await rename(this.#path('unfinished'), this.#path('idle'))
  }

  /** Statements on the way of a record: those that idle daemons did not make. In the order in which they came. */
  async readWay(): Promise<string[]> {
    return (await this.#readSeen()).filter((statement) => !this.#idle.has(statement))
  }

  /** Plans a daemon's next strike. Send it SIGUSR2 afterwards. */
  plan(pid: number, strike: Strike): Promise<void> {
    return writeFile(this.#path('plans', String(pid)), JSON.stringify(strike))
  }

  /** From now on, daemons kill themselves once before and once after each statement on the way of a record. */
  arm(): Promise<void> {
    return writeFile(this.#path('armed'), '')
  }

  disarm(): Promise<void> {
    return rm(this.#path('armed'))
  }

  async readStruck(): Promise<Moment[]> {
    const files = await readdir(this.#path('struck'))
    return Promise.all(
      files.map(async (file) => ({
        statement: await readFile(this.#path('struck', file), 'utf8'),
        when: file.endsWith('before') ? 'before' : 'after',
      })),
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true })
  }

  /** Two daemons may note a statement at the same moment. */
  async #readSeen(): Promise<string[]> {
    return [...new Set((await readFile(this.#path('seen'), 'utf8')).split('\n').slice(0, -1))]
  }

  #path(...parts: string[]): string {
    return join(this.#folder, ...parts)
  }
}

export async function watchStatements(program: Pick<ProgramCopy, 'dir'>): Promise<Statements> {
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-statements-'))
  for (const part of ['plans', 'struck']) await mkdir(join(folder, part))
  await writeFile(join(folder, 'seen'), '')
  return new Statements(folder, program)
}

/** Longer than most loops of a daemon. A statement of a rarer loop counts as a record's. */
const idleMs = 8_000

/** Lets daemons run that have nothing to do, to learn which statements they make without any record. */
export async function learnIdleStatements(statements: Statements, fleet: Fleet): Promise<void> {
  await until(() => fleet.berths.every((berth) => berth.atWork()), Boolean)
  await after(idleMs)
  await statements.endIdle()
}
