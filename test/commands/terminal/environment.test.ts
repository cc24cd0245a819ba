import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  findMistypedVariables,
  findUnsafeNodeOptions,
  mergeEnvironmentFile,
  readEnvironmentFile,
} from '../../../src/commands/terminal/environment.ts'
import { ConfigInvalid } from '../../../src/createVariableReader.ts'
import { checkout, startProgram } from '../../support/program.ts'

function fileOf(text: string): { folder: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'env-'))
  const path = join(folder, 'env')
  writeFileSync(path, text)
  return { folder, path }
}

test('a variable of the process overrides the file, unless it is empty', () => {
  const { path } = fileOf('OUTBOX_TABLE=a\nHTTP_PORT="1" # the port\nLOG_LEVEL=warn\n')
  const env = mergeEnvironmentFile({ OUTBOX_TABLE: 'b', HTTP_PORT: '' }, readEnvironmentFile(path))
  expect(env).toEqual({ OUTBOX_TABLE: 'b', HTTP_PORT: '1', LOG_LEVEL: 'warn' })
})

test('relative paths and the default folder of mappings start at the folder of the file', () => {
  const { folder, path } = fileOf('DATABASE_URL_FILE=secrets/url\nSERVICE_CA_FILE=/etc/ca.pem\n')
  mkdirSync(join(folder, 'mappings'))
  expect(readEnvironmentFile(path).values).toEqual({
    DATABASE_URL_FILE: join(folder, 'secrets/url'),
    SERVICE_CA_FILE: '/etc/ca.pem',
    MAPPINGS_DIR: join(folder, 'mappings'),
  })
})

test('a file that cannot be read makes the configuration invalid', () => {
  expect(() => readEnvironmentFile('/nowhere/env')).toThrow(ConfigInvalid)
})

function namesOfCutValues(text: string): (string | undefined)[] {
  try {
    readEnvironmentFile(fileOf(text).path)
    return []
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    expect(error.problems.join()).not.toContain('s3cr')
    return error.problems.map((problem) => /# begins a comment in the value of (\S+): put/.exec(problem)?.[1])
  }
}

test.each([
  ['S=s3cr#et', ['S']],
  ['S=s3cr et#x', ['S']],
  ['S=#s3cret', ['S']],
  ['export A=b#\nB = c # comment\nC=d#e#f\nA=g#h', ['A', 'C']],
  ['S: s3cr#et', ['S']],
  ['S="s3cr#et', ['S']],
  ["S='s3cr#et", ['S']],
  ['S=`s3cr#et', ['S']],
  ['S="s3cr #et', ['S']],
  ["S='s3cr'et#x", ['S']],
  ["S='s3cr'#et", ['S']],
  ["S='s3cr'#'et'", ['S']],
  ["S='it's s3cr#et'", ['S']],
  ['S="s3cr#et\nT="c"\nU=\'d\'#e', ['S', 'U']],
])('a value that a # would cut is refused with its name, and not shown: %j', (text, names) => {
  expect(namesOfCutValues(text)).toEqual(names)
})

test.each([
  [`S='s3cr#et'`, { S: 's3cr#et' }],
  ['A="s#"\nB=`#`\nC="a#\'b"', { A: 's#', B: '#', C: "a#'b" }],
  ['S: "k9#x"\t# comment', { S: 'k9#x' }],
  ['# D=e#f\nE= # none\r\nF=a # b#c\nG=', { E: '', F: 'a', G: '' }],
  ["KEY='-----\n# no comment#\n-----' # the key", { KEY: '-----\n# no comment#\n-----' }],
])('a # in quotes is of the value, and a # after a space begins a comment: %j', (text, values) => {
  expect(readEnvironmentFile(fileOf(text).path).values).toEqual(values)
})

test('a byte order mark at the beginning of the file is no part of the first name', () => {
  expect(readEnvironmentFile(fileOf('\uFEFFOUTBOX_TABLE=a\r\nLOG_LEVEL=warn\r\n').path).values).toEqual({
    OUTBOX_TABLE: 'a',
    LOG_LEVEL: 'warn',
  })
})

const payload = '{"customerId":"C1","orderDate":"2026-11-03T10:00:00+01:00","amount":12.30,"field2":"x"}'

test.each([
  ['before the command', (path: string) => ['--env-file', path, 'map']],
  ['as one word', (path: string) => [`--env-file=${path}`, 'map']],
  ['behind the command', (path: string) => ['map', '--env-file', path]],
])('outboxd takes --env-file %s, and works from any folder', async (_, args) => {
  const { folder, path } = fileOf(`MAPPINGS_DIR=${join(checkout, 'mappings')}\n`)
  writeFileSync(join(folder, 'payload.json'), payload)
  await using program = startProgram({ args: [...args(path), 'payload.json', '--type', 'data'], folder })
  expect(await program.ended()).toMatchObject({ code: 0, stdout: expect.stringContaining('POST /api/v1/data') })
})

test('two --env-file options are refused', async () => {
  const files = [fileOf('').path, fileOf('').path].flatMap((path) => ['--env-file', path])
  await using program = startProgram({ args: [...files, 'config'], folder: tmpdir() })
  expect(await program.ended()).toMatchObject({ code: 2, stderr: expect.stringContaining('Give only one file') })
})

test('without MAPPINGS_DIR the package’s examples are used, but only for a service on loopback', async () => {
  const { folder } = fileOf('')
  writeFileSync(join(folder, 'payload.json'), payload)
  const map = async (SERVICE_BASE_URL: string) => {
    await using program = startProgram({
      args: ['map', 'payload.json', '--type', 'data'],
      folder,
      env: { SERVICE_BASE_URL },
    })
    return await program.ended()
  }
  expect(await map('http://127.0.0.1:8080')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`The examples of the package are read instead: ${join(checkout, 'mappings')}`),
  })
  expect(await map('https://service.example')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/mappings.*cannot be read.*MAPPINGS_DIR names/),
  })
})

test('the folder of mappings beside the file is preferred to ./mappings, with a message', async () => {
  const { folder, path } = fileOf('')
  const here = fileOf('').folder
  for (const each of [folder, here]) mkdirSync(join(each, 'mappings'))
  writeFileSync(join(here, 'payload.json'), payload)
  const map = async (env: Record<string, string>) => {
    await using program = startProgram({
      args: ['--env-file', path, 'map', 'payload.json', '--type', 'data'],
      folder: here,
      env,
    })
    return (await program.ended()).stderr
  }
  expect(await map({})).toContain(`The mapping files next to ${path} are read, not those of ${join(here, 'mappings')}`)
  expect(await map({ MAPPINGS_DIR: 'mappings' })).not.toContain('beside')
})

test.each([
  ['RATE_LIMIT_REQEUSTS', 'RATE_LIMIT_REQUESTS'],
  ['RTAE_LIMIT_REQUESTS', 'RATE_LIMIT_REQUESTS'],
  ['rate_limit_requests', 'RATE_LIMIT_REQUESTS'],
  ['RATE_LIMIT_WINDOW', 'RATE_LIMIT_WINDOW_SECONDS'],
  ['REQUEST_TIMEOUT', 'REQUEST_TIMEOUT_SECONDS'],
  ['SERVICE_CLIENT_SECRET_FIEL', 'SERVICE_CLIENT_SECRET_FILE'],
  ['DATABSE_URL', 'DATABASE_URL'],
  ['LOGLEVEL', 'LOG_LEVEL'],
])('%s is reported as a misspelt %s', (name, meant) => {
  expect(findMistypedVariables({ [name]: 'x' })).toEqual([
    `the variable ${name} is not one of outboxd's; did you mean ${meant}?`,
  ])
})

test.each([
  'RATE_LIMIT_REQUESTS',
  'DATABASE_URL_FILE',
  'HTTP_PROXY',
  'HTTPS_PORT',
  'SANDBOX_RATE_LIMIT_REQUESTS',
  'SANDBOX_CLIENT_ID',
  'SERVICE_NAME',
  'PATH',
  'HOME',
  'PORT',
  'NODE_ENV',
  'LOG_FILE',
  'KUBERNETES_SERVICE_HOST',
])('%s is not reported', (name) => {
  expect(findMistypedVariables({ [name]: 'x' })).toEqual([])
})

test('the value of a misspelt variable is not printed, and an empty variable is not reported', () => {
  expect(findMistypedVariables({ SERVICE_CLIENT_SECRTE: 'hunter2' }).join()).not.toContain('hunter2')
  expect(findMistypedVariables({ RATE_LIMIT_REQEUSTS: '' })).toEqual([])
})

test.each([
  '--tls-keylog=/tmp/keys',
  '--inspect',
  '--inspect-brk=0.0.0.0:9229',
])('%s in NODE_OPTIONS gets a warning because it reveals secrets', (option) => {
  expect(findUnsafeNodeOptions({ NODE_OPTIONS: `--trace-warnings ${option}` })).toEqual([
    expect.stringContaining(`NODE_OPTIONS has ${option.replace(/-brk|=.*/g, '').slice(0, 12)}`),
  ])
})

test('other Node options get no warning', () => {
  expect(findUnsafeNodeOptions({ NODE_OPTIONS: '--max-old-space-size=100', PATH: '/bin' })).toEqual([])
})
