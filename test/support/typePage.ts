import { spawn, spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './freePort.ts'
import { createDatabaseOn, startPostgres } from './postgres.ts'
import { checkout, sourceMain } from './program.ts'
import { until } from './until.ts'

/**
 * Runs a page of docs/ as a reader would: types each ```sh block into one shell. A ```text block right below is what its last command
 * prints, sooner or later. `…` stands for anything within a line, or on a line of its own for any lines.
 */

export interface Step {
  readonly typed: string
  readonly printed: string | undefined
}

export const hasPsql = spawnSync('psql', ['--version']).status === 0

/** @param name of a page in docs/ */
export async function readSteps(name: string): Promise<Step[]> {
  const page = await readFile(join(checkout, 'docs', name), 'utf8')
  return [...page.matchAll(/^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)].map(([, typed = '', printed]) => ({
    typed: typed.trimEnd(),
    printed,
  }))
}

/** Types the steps, with a database and a Postgres of its own. */
export async function typeSteps(steps: readonly Step[]): Promise<void> {
  await using postgres = await startPostgres() // as a reader has it, with fsync: `check` warns of one without
  const port = String(await freePort())
  const url = await createDatabaseOn(postgres.url, 'erp')
  const shell = await openShell({ DATABASE_URL: url, HTTP_PORT: '0' })
  try {
    for (const { typed, printed } of steps) {
      const { before, last } = splitLast(typed.replaceAll('8080', port))
      if (before !== '') await shell.type(before)
      const type = async () => (await shell.type(last)).trimEnd()
      if (printed === undefined) await type()
      else await until(type, (seen) => matches(seen, printed.replaceAll('8080', port)))
    }
  } finally {
    await shell.end()
  }
}

/** Returns true if a command printed what the page says; `…` stands for anything. */
export function matches(seen: string, expected: string): boolean {
  const lines = expected
    .trimEnd()
    .split('\n')
    .map((line) => (line === '…' ? '(?:[^\\n]*\\n)*?' : `${line.split('…').map(RegExp.escape).join('[^\\n]*')}\\n`))
  const clean = seen.split('\n').map((line) => `${line.trimEnd()}\n`)
  return new RegExp(`^${lines.join('')}$`).test(clean.join(''))
}

/** Splits off the last command. A command begins at the left margin; indented and closing lines belong to it. */
function splitLast(typed: string): { before: string; last: string } {
  const lines = typed.split('\n')
  const at = lines.findLastIndex((line) => /^[a-z]/.test(line))
  return { before: lines.slice(0, at).join('\n'), last: lines.slice(at).join('\n') }
}

/** Opens a shell in a folder where `outboxd` is installed as a command. */
async function openShell(env: Record<string, string>) {
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-tutorial-'))
  await writeFile(join(folder, 'outboxd'), `#!/bin/sh\nexec '${process.execPath}' '${sourceMain}' "$@"\n`)
  await chmod(join(folder, 'outboxd'), 0o755)
  await mkdir(join(folder, 'node_modules'))
  await symlink(checkout, join(folder, 'node_modules', 'outboxd'))
  const cache = join(checkout, 'node_modules', '.cache', 'outboxd-tests')
  const shell = spawn('bash', ['--norc', '--noprofile'], {
    cwd: folder,
    env: {
      PATH: `${folder}:${process.env.PATH}`,
      NODE_ENV: 'production',
      NODE_COMPILE_CACHE: cache,
      DOCS: join(checkout, 'docs'),
      ...env,
    },
    detached: true, // its own process group, so that its programs end with it
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let heard = ''
  shell.stdout.setEncoding('utf8').on('data', (text) => {
    heard += text
  })
  const ended = new Promise((resolve) => shell.once('close', resolve))
  let count = 0
  return {
    /** Types something and waits until the shell is ready for more. @returns what was printed */
    async type(typed: string): Promise<string> {
      count += 1
      const mark = `--- typed ${count} ---`
      const from = heard.length
      shell.stdin.write(`{ ${typed}\n} 2>&1\necho '${mark}'\n`)
      await until(
        () => heard.slice(from),
        (text) => text.includes(`${mark}\n`),
      )
      return heard.slice(from, heard.indexOf(mark, from))
    },
    async end(): Promise<void> {
      if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGKILL')
      await ended
      await rm(folder, { recursive: true })
    },
  }
}
