import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { version } from '../src/version.ts'
import { checkout, sourceMain, startProgram } from './support/program.ts'

/** Rules for every command. */

test.each([
  ['a mistake of usage', ['map', '--json'], 2, 'outboxd: give exactly one of a file'],
  ['a configuration that cannot be used', ['list', '--json'], 2, 'DATABASE_URL is required'],
  ['an option that does not exist', ['status', '--json', '--nope'], 2, "outboxd: unknown option '--nope'"],
  ['a command that does not exist', ['statsu', '--json'], 2, "outboxd: unknown command 'statsu'"],
  ['an argument that is missing', ['show', '--json'], 2, "outboxd: missing required argument 'word'"],
  ['a value that is missing', ['list', '--json', '--state'], 2, "outboxd: option '--state"],
])('--json prints JSON even on an error: %s', async (_, args, code, message) => {
  await using program = startProgram({ args })
  const ended = await program.ended()
  expect(ended.code).toBe(code)
  const said: { exitCode: number; messages: string[] } = JSON.parse(ended.stdout)
  expect(said.exitCode).toBe(code)
  expect(said.messages.join('\n')).toContain(message)
  expect(ended.stderr).toContain(message)
})

test.each([[['list', '--nope']], [['list', '--', '--json']]])('%j prints no JSON', async (args) => {
  await using program = startProgram({ args })
  expect(await program.ended()).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/^outboxd: /) })
})

test('--help shows the eight daily commands first, then the others in two groups', async () => {
  await using program = startProgram({ args: ['--help'] })
  const { stdout } = await program.ended()
  const groups = stdout.matchAll(/^(\w+):\n((?: {2}.*\n)+)/gm)
  const names = Object.fromEntries(
    [...groups].map(([, group, lines = '']) => [group, [...lines.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name)]),
  )
  expect(Object.keys(names)).toEqual(['Options', 'Daily', 'Sometimes', 'Rarely'])
  expect(names.Daily).toEqual(['run', 'status', 'list', 'show', 'replay', 'resolve', 'check', 'map'])
  expect(names.Rarely).toContain('help')
})

test('-v prints only the version', async () => {
  await using program = startProgram({ args: ['-v'] })
  expect(await program.ended()).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' })
})

const asNode = (version: string) =>
  `data:text/javascript,${encodeURIComponent(
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`,
  )}`

test.each([
  [['run']],
  [['sandbox', '--port', '0']],
  [['status', '--json']],
  [['--version']],
])('on an older Node, %j names the needed and the found version in one line, and exits with 2', async (args) => {
  await using program = startProgram({ args, flags: ['--import', asNode('24.11.0')] })
  const { code, stdout, stderr } = await program.ended()
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^outboxd needs Node 24\.16 or Node 26 or newer, and this is Node 24\.11\.0 \(.+\n$/)
})

test('on an older Node, the sandbox for tests names both versions before any of it is loaded', async () => {
  const module = pathToFileURL(join(checkout, 'src/sandbox/sandbox.ts')).href
  const script = `data:text/javascript,${encodeURIComponent(`
    import { startSandbox } from ${JSON.stringify(module)}
    await startSandbox({ embedded: true }).catch((error) => process.stdout.write(error.message))
  `)}`
  const said = await promisify(execFile)(process.execPath, [
    '--import',
    asNode('20.19.5'),
    '--import',
    script,
    '--eval',
    '',
  ])
  expect(said.stdout).toMatch(/^outboxd\/sandbox needs Node 22 or newer, and this is Node 20\.19\.5 /)
})

test('a reader that closes the pipe early, as | head does, causes no error', async () => {
  const child = spawn(process.execPath, [sourceMain, 'config'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
  })
  child.stdout.destroy()
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect({ said, code }).toEqual({ said: '', code: 0 })
})
