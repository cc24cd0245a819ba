import { spawn, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/freePort.ts'
import { createDatabaseOn, startPostgres } from '../support/postgres.ts'
import { checkout, sourceMain } from '../support/program.ts'
import { until } from '../support/until.ts'

/**
 * docs/tutorial.md, as a reader would do it: each ```sh block is typed into one shell, and a ```text block right below is what its
 * last command prints, sooner or later. `…` stands for anything within a line, or on a line of its own for any lines.
 */

const page = await readFile(join(checkout, 'docs', 'tutorial.md'), 'utf8')
const steps = [...page.matchAll(/^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)].map(([, typed = '', printed]) => ({
  typed: typed.trimEnd(),
  printed,
}))

const hasPsql = spawnSync('psql', ['--version']).status === 0

test('the page has steps, and most of them say what is printed', () => {
  expect(steps.length).toBeGreaterThan(10)
  expect(steps.filter(({ printed }) => printed !== undefined).length).toBeGreaterThan(8)
})

test.skipIf(!hasPsql)('the tutorial does what it says', { timeout: 300_000 }, async () => {
  const postgres = await startPostgres() // as a reader has it, with fsync: `check` warns of one without
  const port = await freePort()
  const shell = await openShell({ DATABASE_URL: await createDatabaseOn(postgres.url, 'erp'), HTTP_PORT: '0' })
  onTestFinished(async () => {
    await shell.end()
    await postgres.stop()
  })
  for (const { typed, printed } of steps) {
    const { before, last } = splitLast(typed.replaceAll('8080', String(port)))
    if (before !== '') await shell.type(before)
    const type = async () => (await shell.type(last)).trimEnd()
    if (printed === undefined) await type()
    else await until(type, (seen) => matches(seen, printed.replaceAll('8080', String(port))))
  }
})

test.each([
  ['a\nb', 'a\nb\n', true],
  ['a\nb', 'a\n', false],
  ['a 1 b', 'a … b\n', true],
  ['x\ny\nlast', '…\nlast\n', true],
  ['last', '…\nlast\n', true],
  ['x\nother', '…\nlast\n', false],
])('%j against %j: %j', (seen, expected, does) => {
  expect(matches(seen, expected)).toBe(does)
})

function matches(seen: string, expected: string): boolean {
  const lines = expected
    .trimEnd()
    .split('\n')
    .map((line) => (line === '…' ? '(?:[^\\n]*\\n)*?' : `${line.split('…').map(RegExp.escape).join('[^\\n]*')}\\n`))
  const clean = seen.split('\n').map((line) => `${line.trimEnd()}\n`)
  return new RegExp(`^${lines.join('')}$`).test(clean.join(''))
}

/** A command begins at the left; what is indented, or closes it, belongs to it. */
function splitLast(typed: string): { before: string; last: string } {
  const lines = typed.split('\n')
  const at = lines.findLastIndex((line) => /^[a-z]/.test(line))
  return { before: lines.slice(0, at).join('\n'), last: lines.slice(at).join('\n') }
}

/** A shell in an empty folder, where `outboxd` is a command. */
async function openShell(env: Record<string, string>) {
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-tutorial-'))
  await writeFile(join(folder, 'outboxd'), `#!/bin/sh\nexec '${process.execPath}' '${sourceMain}' "$@"\n`)
  await chmod(join(folder, 'outboxd'), 0o755)
  const cache = join(checkout, 'node_modules', '.cache', 'outboxd-tests')
  const shell = spawn('bash', ['--norc', '--noprofile'], {
    cwd: folder,
    env: { PATH: `${folder}:${process.env.PATH}`, NODE_ENV: 'production', NODE_COMPILE_CACHE: cache, ...env },
    detached: true, // a group of its own: what it starts ends with it
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
