import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { type Json, order } from '../../sandbox/setup.ts'
import { type Program, sourceMain, startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'

interface Running extends AsyncDisposable {
  program: Program
  announced: Json
  /** The folder with the server's socket. */
  folder: string
  /** The server's process. */
  pid: number
}

/** Starts the command as a process without variables. */
async function run(...args: string[]): Promise<Running> {
  const program = startProgram({ args: ['sandbox', '--port', '0', '--json', ...args] })
  const announced = JSON.parse(await program.line((line) => line.startsWith('{')))
  const folder = new URL(announced.databaseUrl).searchParams.get('host') as string
  return { program, announced, folder, pid: serverOf(folder), [Symbol.asyncDispose]: program[Symbol.asyncDispose] }
}

/** The process id of the server whose socket is in this folder. */
function serverOf(folder: string): number {
  return Number(readFileSync(join(folder, '.s.PGSQL.5432.lock'), 'utf8').split('\n')[0])
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function createOrder(url: string): Promise<string> {
  const form = { grant_type: 'client_credentials', client_id: 'sandbox', client_secret: 'sandbox-secret' }
  const granted = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  const { access_token } = (await granted.json()) as Json
  const headers = { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' }
  const created = await fetch(`${url}/api/v1/orders`, { method: 'POST', headers, body: JSON.stringify(order()) })
  return ((await created.json()) as Json).orderId
}

const ordersOf = async (url: string) =>
  ((await (await fetch(`${url}/_sandbox/orders`)).json()) as Json).rows.map((row: Json) => row.orderId)

test('--embedded needs no database, prints its address as JSON, and leaves nothing behind when it stops', async () => {
  await using running = await run('--embedded')
  const { url, port } = running.announced
  expect(running.announced).toEqual({ url, port, clientId: 'sandbox', databaseUrl: expect.any(String) })
  expect(await ordersOf(url)).toEqual([])
  const { code, stderr } = await running.program.stop()
  expect({ code, isThere: isThere(running.pid), isLeft: existsSync(running.folder) }).toEqual({
    ...{ code: 0, isThere: false, isLeft: false },
  })
  expect(stderr).toContain('removed when it ends')
})

test('if its PostgreSQL is killed, the sandbox exits with 1 and prints the last output of PostgreSQL', async () => {
  await using running = await run('--embedded')
  await createOrder(running.announced.url)
  process.kill(running.pid, 'SIGKILL')
  const { code, stderr } = await running.program.ended()
  expect(code).toBe(1)
  expect(stderr).toMatch(/sandbox: ended: the sandbox's PostgreSQL ended \(SIGKILL\)\. Its last output: /)
  expect(existsSync(running.folder)).toBe(false)
})

test('if the npx that started it is killed, the sandbox and its PostgreSQL end too', async () => {
  const project = await mkdtemp(join(tmpdir(), 'npx-'))
  const bin = join(project, 'node_modules/.bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(bin, 'outboxd'), `#!${process.execPath}\nimport(${JSON.stringify(sourceMain)})\n`, {
    mode: 0o755,
  })
  await writeFile(join(project, 'package.json'), '{}')
  const npx = spawn('npx', ['--no-install', 'outboxd', 'sandbox', '--embedded', '--port', '0', '--json'], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = await once(createInterface({ input: npx.stdout }), 'line')
  const folder = new URL(JSON.parse(line).databaseUrl).searchParams.get('host') as string
  const server = serverOf(folder)
  npx.kill('SIGKILL')
  await until(
    () => [isThere(server), existsSync(folder)],
    (left) => !left.includes(true),
  )
})

test('with --data the sandbox keeps its data, even after kill -9, and refuses a folder in use', async () => {
  const data = await mkdtemp(join(tmpdir(), 'data-'))
  await using first = await run('--data', data)
  const orderId = await createOrder(first.announced.url)
  first.program.signal('SIGKILL')

  // The reaper of the first ends the server and removes the folder with the socket. The second sandbox waits for that.
  await using second = await run('--data', data)
  await until(
    () => [isThere(first.pid), existsSync(first.folder)],
    (left) => !left.includes(true),
  )
  expect(await ordersOf(second.announced.url)).toEqual([orderId])
  await using third = startProgram({ args: ['sandbox', '--port', '0', '--data', data] })
  const { code, stderr } = await third.ended()
  expect(code).toBe(1)
  expect(stderr).toMatch(/the sandbox could not start: PostgreSQL did not start: .*"postmaster.pid" already exists/)
  await second.program.stop()
  expect(existsSync(second.folder)).toBe(false)
  expect(existsSync(data)).toBe(true)
})
