import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'

/** docs/why/architecture.md, "What may import what". */

const stages = ['daemon/capture', 'daemon/dispatch', 'daemon/submit', 'daemon/track', 'daemon/report']
const databases = ['postgres', 'ledger', 'outbox']

interface Import {
  /** The importing file, from src/, such as `daemon/track/schedule.ts`. */
  from: string
  /** The imported file from src/, or a package's or node:'s name. */
  to: string
  /** True if only types are imported. */
  types: boolean
}

interface Rule {
  says: string
  breaks: (edge: Import) => boolean
}

/** What a folder of ours imports, beside itself, model.ts, boundText.ts, plainText.ts, time.ts, clock.ts, resources.ts, slotDurations.ts and types of config.ts. */
const mayImport: Record<string, string[]> = {
  ...Object.fromEntries(stages.map((stage) => [stage, []])),
  yaml: [],
  embedded: [],
  mapping: ['yaml'],
  postgres: [],
  ledger: ['postgres'],
  outbox: ['postgres', 'ledger', 'mapping', 'yaml'],
  operations: ['ledger', 'outbox', 'postgres', 'mapping', 'yaml', 'service', 'observe'],
  service: ['yaml'],
  discover: ['service'],
  observe: [],
}

const rules: Rule[] = [
  {
    says: 'boundText.ts, clock.ts, resources.ts and slotDurations.ts import nothing, model.ts and its folder only each other and types of resources.ts',
    breaks: ({ from, to, types }) =>
      isOneOf(from, 'boundText.ts', 'clock.ts', 'resources.ts', 'slotDurations.ts') ||
      (isOfModel(from) && !isOfModel(to) && !(to === 'resources.ts' && types)),
  },
  {
    says: 'only model.ts imports its folder',
    breaks: ({ from, to }) => isIn(to, 'model') && !isOfModel(from),
  },
  {
    says: 'config.ts and the files of its variables import only each other and resources.ts, so that all may import its types',
    breaks: ({ from, to }) =>
      isOneOf(from, 'config.ts', 'variables.ts', 'createVariableReader.ts', 'variableSchemas.ts', 'pem.ts') &&
      isOurs(to) &&
      !isOneOf(to, 'variables.ts', 'createVariableReader.ts', 'variableSchemas.ts', 'pem.ts', 'resources.ts'),
  },
  ...Object.entries(mayImport).map(([name, others]) => ({
    says: `${name} imports ${['its own folder', ...others, 'model.ts, boundText.ts, plainText.ts, time.ts, clock.ts, resources.ts, slotDurations.ts and types of config.ts'].join(', ')}`,
    breaks: (edge: Import) =>
      home(edge.from) === name && isOurs(edge.to) && !isOwnOrShared(edge) && !others.includes(home(edge.to)),
  })),
  {
    says: 'a stage uses no database, network, log or metrics package: adapters do that',
    breaks: ({ from, to }) => isIn(from, ...stages, 'mapping') && adapterPackages.includes(to),
  },
  {
    says: 'the daemon imports no command, not the console, not main.ts, not the sandbox, not the demo',
    breaks: ({ from, to }) =>
      folder(from) === 'daemon' && isIn(to, '', 'commands', 'console', 'sandbox', 'demo') && !isShared(to),
  },
  {
    says: 'main.ts reaches the rest through commands and operations only',
    breaks: ({ from, to }) =>
      from === 'main.ts' && isIn(to, ...stages, ...databases, 'daemon', 'service', 'console', 'sandbox', 'demo'),
  },
  { says: 'no file imports main.ts', breaks: ({ to }) => to === 'main.ts' },
  {
    says: 'only main.ts and commands import commands',
    breaks: ({ from, to }) => isIn(to, 'commands') && from !== 'main.ts' && !isIn(from, 'commands'),
  },
  {
    says: 'operations import neither commands nor the console, which both use operations',
    breaks: ({ from, to }) => isIn(from, 'operations') && isIn(to, 'commands', 'console'),
  },
  {
    says: 'only main.ts, commands and the console import operations',
    breaks: ({ from, to }) =>
      isIn(to, 'operations') && from !== 'main.ts' && !isIn(from, 'commands', 'console', 'operations'),
  },
  {
    says: 'only commands/console.ts imports the console',
    breaks: ({ from, to }) => isIn(to, 'console') && !isIn(from, 'console') && from !== 'commands/console.ts',
  },
  {
    says: 'the console imports no stage, daemon, command, sandbox, demo or embedded Postgres',
    breaks: ({ from, to }) =>
      isIn(from, 'console') && isIn(to, ...stages, 'daemon', 'commands', 'sandbox', 'demo', 'embedded'),
  },
  {
    says: 'only commands import discover; the daemon gets what was found in variables',
    breaks: ({ from, to }) => isIn(to, 'discover') && !isIn(from, 'commands', 'discover'),
  },
  {
    says: 'only commands import daemon/app.ts',
    breaks: ({ from, to }) => to === 'daemon/app.ts' && !isIn(from, 'commands'),
  },
  {
    says: 'of our files the sandbox imports only the embedded Postgres and yaml, so that it cannot hide a mistake of the client',
    breaks: ({ from, to }) => isIn(from, 'sandbox') && isOurs(to) && !isIn(to, 'sandbox', 'embedded', 'yaml'),
  },
  {
    says: 'only commands/sandbox.ts and the demo import the sandbox',
    breaks: ({ from, to }) =>
      isIn(to, 'sandbox') &&
      !isIn(from, 'sandbox', 'demo') &&
      !isOneOf(from, 'commands/sandbox.ts', 'commands/demo.ts'),
  },
  {
    says: 'only commands/demo.ts imports the demo',
    breaks: ({ from, to }) => isIn(to, 'demo') && !isIn(from, 'demo') && from !== 'commands/demo.ts',
  },
  {
    says: 'only the demo and the sandbox import the embedded Postgres',
    breaks: ({ from, to }) => isIn(to, 'embedded') && !isIn(from, 'embedded', 'demo', 'sandbox'),
  },
  {
    says: 'src/service is the only importer of undici',
    breaks: ({ from, to }) => to === 'undici' && !isIn(from, 'service'),
  },
  {
    says: 'ledger/queue.ts and the sandbox are the only importers of pg-boss',
    breaks: ({ from, to }) => to === 'pg-boss' && from !== 'ledger/queue.ts' && !isIn(from, 'sandbox'),
  },
  {
    says: 'only postgres, ledger, outbox, the sandbox and the demo import pg, and have all the SQL',
    breaks: ({ from, to }) =>
      isOneOf(to, 'pg', 'node-pg-migrate') &&
      !isIn(from, ...databases, 'sandbox', 'demo') &&
      from !== 'commands/demo.ts',
  },
  {
    says: 'src/observe is the only importer of pino and prom-client',
    breaks: ({ from, to }) => isOneOf(to, 'pino', 'prom-client') && !isIn(from, 'observe'),
  },
  {
    says: 'the sandbox and the console are the only importers of fastify',
    breaks: ({ from, to }) => (to === 'fastify' || to.startsWith('@fastify/')) && !isIn(from, 'sandbox', 'console'),
  },
]

const adapterPackages = ['undici', 'pg', 'pg-boss', 'node-pg-migrate', 'pino', 'prom-client', 'fastify', 'node:http']

const onlyMain = 'only main.ts reads process.env, listens to signals and sets exit codes'
/** Beside main.ts, the file that passes a few variables to the processes that we start, without reading them. */
const mayReadProcess = ['main.ts', 'embedded/postgresServer.ts']
const processMessage =
  /\bprocess\s*\.\s*(env|on|once|exit|exitCode|addListener)\b|\bnode:process\b|\{[^}]*\}\s*=\s*process\b/

const resourceName = /'(orders|order_status|orderId)'|[!=]== 'data'/

const sources = readSources()

test('the sources were found', () => {
  expect(sources.size).toBeGreaterThan(10)
  expect(allImports(sources).length).toBeGreaterThan(20)
})

test.each(rules)('$says', ({ breaks }) => {
  expect(allImports(sources).filter(breaks).map(inMessage)).toEqual([])
})

test(onlyMain, () => {
  expect(readersOfProcess(sources)).toEqual([])
})

test('only resources.ts names a resource', () => {
  expect(namingResources(sources)).toEqual([])
})

test('no files of ours import each other in a circle, except for types', () => {
  expect(circles(allImports(sources))).toEqual([])
})

/** Each rule must find what it forbids. */
describe('the rules themselves', () => {
  test.each([
    ['model.ts', `import { z } from 'zod'`],
    ['model.ts', `import { serviceResources } from './resources.ts'`],
    ['resources.ts', `import type { State } from './model.ts'`],
    ['model/submission.ts', `import type { Mapping } from '../mapping/mapping.ts'`],
    ['daemon/submit/submit.ts', `import type { Change } from '../../model/submission.ts'`],
    ['config.ts', `import { states } from './model.ts'`],
    ['daemon/track/schedule.ts', `import { decideSubmit } from '../submit/decideSubmit.ts'`],
    ['daemon/dispatch/dispatcher.ts', `import type { Budget } from '../../ledger/budget.ts'`],
    ['daemon/dispatch/dispatcher.ts', `import { createApp } from '../app.ts'`],
    ['daemon/capture/capture.ts', `import { readConfig } from '../../config.ts'`],
    ['daemon/report/report.ts', `import type { Pool } from 'pg'`],
    ['mapping/mapRecord.ts', `import pg from 'pg'`],
    ['yaml/exactJson.ts', `import type { Mapping } from '../mapping/mapping.ts'`],
    ['ledger/budget.ts', `import {\n  type Log,\n  createLog,\n} from '../observe/log.ts'`],
    ['ledger/budget.ts', `import { readWaitingRowsThatFit } from '../outbox/readRows.ts'`],
    ['postgres/database.ts', `import type { Budget } from '../ledger/budget.ts'`],
    ['daemon/app.ts', `import { run } from '../commands/run.ts'`],
    ['daemon/loops.ts', `import { exit } from '../commands/terminal/context.ts'`],
    ['main.ts', `import { openLedgerPool } from './ledger/ledgerSessions.ts'`],
    ['daemon/app.ts', `import '../main.ts'`],
    ['outbox/outbox.ts', `import { run } from '../commands/run.ts'`],
    ['outbox/outbox.ts', `const app = await import('../daemon/app.ts')`],
    ['operations/filters.ts', `import { list } from '../commands/list.ts'`],
    ['operations/replay.ts', `import { exit } from '../commands/terminal/context.ts'`],
    ['operations/replay.ts', `import { capture } from '../daemon/capture/capture.ts'`],
    ['daemon/app.ts', `import { replaySubmissions } from '../operations/replay.ts'`],
    ['sandbox/server.ts', `import { states } from '../model.ts'`],
    ['commands/run.ts', `import { startSandbox } from '../sandbox/startSandbox.ts'`],
    ['commands/run.ts', `import { startPrivatePostgres } from '../embedded/privatePostgres.ts'`],
    ['commands/check.ts', `import { request } from 'undici'`],
    ['discover/plan.ts', `import { startSandbox } from '../sandbox/startSandbox.ts'`],
    ['daemon/app.ts', `import { questions } from '../discover/questions.ts'`],
    ['outbox/outbox.ts', `export { PgBoss } from 'pg-boss'`],
    ['commands/list.ts', `import type { Pool } from 'pg'`],
    ['commands/run.ts', `import { pino } from 'pino'`],
    ['observe/httpServer.ts', `import fastify from 'fastify'`],
    ['commands/status.ts', `import { layout } from '../console/html/layout.ts'`],
    ['console/now/readNow.ts', `import { allocateSlots } from '../../daemon/dispatch/allocateSlots.ts'`],
    ['console/now/readNow.ts', `import { startSandbox } from '../../sandbox/startSandbox.ts'`],
    ['console/records/routes.ts', `import { list } from '../../commands/list.ts'`],
    ['operations/replay.ts', `import { replay } from '../commands/replay.ts'`],
  ])('%s with %s is caught', (path, text) => {
    const edges = allImports(new Map([[path, text]]))
    expect(edges).toHaveLength(1)
    expect(rules.filter(({ breaks }) => edges.some(breaks))).not.toEqual([])
  })

  test.each([
    ['model.ts', `import type { Resource } from './resources.ts'`],
    ['daemon/track/schedule.ts', `import type { State } from '../../model.ts'`],
    ['daemon/track/track.ts', `import { nextPollDelayMs } from './schedule.ts'`],
    ['daemon/submit/submit.ts', `import type { Config } from '../../config.ts'`],
    ['mapping/mapping.ts', `import { z } from 'zod'\nimport { parse } from 'yaml'`],
    ['model.ts', `export type * from './model/submission.ts'`],
    ['model/service.ts', `import type { Resource } from '../resources.ts'`],
    ['outbox/cursorStore.ts', `import { isSameRowSql } from '../ledger/sameRow.ts'`],
    ['commands/sandbox.ts', `import { startSandbox } from '../sandbox/startSandbox.ts'`],
    ['commands/console.ts', `import { createConsole } from '../console/createConsole.ts'`],
    ['console/now/readNow.ts', `import { readLedgerStatus } from '../../operations/readStatus.ts'`],
    ['console/now/routes.ts', `import type { FastifyInstance } from 'fastify'`],
    ['ledger/queue.ts', `import { PgBoss } from 'pg-boss'\nimport pg from 'pg'`],
    [
      'daemon/app.ts',
      `import { Outbox } from '../outbox/outbox.ts'\nimport { createMetrics } from '../observe/metrics.ts'`,
    ],
    ['outbox/outbox.ts', `// as import x from '../app.ts' would\nimport { states } from '../model.ts'`],
  ])('%s with %s passes', (path, text) => {
    const edges = allImports(new Map([[path, text]]))
    expect(rules.filter(({ breaks }) => edges.some(breaks))).toEqual([])
  })

  test.each([
    `const url = process.env.DATABASE_URL`,
    `process.on('SIGTERM', stop)`,
    `process.exitCode = 1`,
    `const { env } = process`,
    `import { exit } from 'node:process'`,
  ])('%s outside main.ts is caught', (text) => {
    expect(readersOfProcess(new Map([['app.ts', text]]))).not.toEqual([])
    expect(readersOfProcess(new Map([['main.ts', text]]))).toEqual([])
  })

  test('a file that tests for a resource’s name is caught, except for resources.ts', () => {
    const text = `const endpoint = resource === 'orders' ? 'order' : 'submit'`
    expect(namingResources(new Map([['daemon/submit/submit.ts', text]]))).not.toEqual([])
    expect(namingResources(new Map([['resources.ts', text]]))).toEqual([])
  })

  test('a circle of two imports is caught, and one of types is not', () => {
    const edge = { from: 'a.ts', to: 'b.ts', types: false }
    expect(circles([edge, { from: 'b.ts', to: 'a.ts', types: false }])).toEqual(['a.ts', 'b.ts'])
    expect(circles([edge, { from: 'b.ts', to: 'a.ts', types: true }])).toEqual([])
  })

  test('process.env in a comment is not caught', () => {
    expect(
      readersOfProcess(new Map([['app.ts', `/** reads no process.env */\nconst a = 'http://x' // process.exit`]])),
    ).toEqual([])
  })
})

/** Files that reach themselves. */
function circles(edges: readonly Import[]): string[] {
  const next = Map.groupBy(
    edges.filter(({ to, types }) => isOurs(to) && !types),
    ({ from }) => from,
  )
  const reaches = (goal: string) => {
    const seen = new Set<string>()
    const waiting = [goal]
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop())
      for (const { to } of next.get(at) ?? []) {
        if (to === goal) return true
        if (!seen.has(to)) waiting.push(to)
        seen.add(to)
      }
    return false
  }
  return [...next.keys()].filter(reaches)
}

function folder(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : ''
}

/** Returns the stage that a file belongs to, or else its first folder. */
function home(path: string): string {
  return stages.find((stage) => path.startsWith(`${stage}/`)) ?? folder(path)
}

function isIn(path: string, ...folders: string[]): boolean {
  return isOurs(path) && (folders.includes(folder(path)) || folders.includes(home(path)))
}

function isOneOf(path: string, ...paths: string[]): boolean {
  return paths.includes(path)
}

function isOurs(path: string): boolean {
  return path.endsWith('.ts')
}

function isOwnOrShared({ from, to, types }: Import): boolean {
  return (
    home(from) === home(to) ||
    isOneOf(
      to,
      'model.ts',
      'boundText.ts',
      'plainText.ts',
      'time.ts',
      'clock.ts',
      'resources.ts',
      'slotDurations.ts',
    ) ||
    (to === 'config.ts' && types) ||
    (to === 'createVariableReader.ts' && isIn(from, 'operations')) // its ConfigInvalid, to explain it
  )
}

/** True for model.ts and the files that it consists of. */
function isOfModel(path: string): boolean {
  return path === 'model.ts' || isIn(path, 'model')
}

/** True for the files at the top of src that all may import. */
function isShared(path: string): boolean {
  return isOneOf(
    path,
    'model.ts',
    'boundText.ts',
    'clock.ts',
    'plainText.ts',
    'resources.ts',
    'slotDurations.ts',
    'time.ts',
    'config.ts',
    'pem.ts',
    'version.ts',
  )
}

function inMessage({ from, to }: Import): string {
  return `src/${from} imports ${isOurs(to) ? `src/${to}` : to}`
}

function readersOfProcess(files: Map<string, string>): string[] {
  return [...files]
    .filter(([path, text]) => !mayReadProcess.includes(path) && processMessage.test(withoutComments(text)))
    .map(([path]) => path)
}

/** Returns the files that name a resource. The sandbox, the demo and discover may: their resources are their own. */
function namingResources(files: Map<string, string>): string[] {
  return [...files]
    .filter(
      ([path, text]) =>
        path !== 'resources.ts' && !isIn(path, 'sandbox', 'demo', 'discover') && resourceName.test(text),
    )
    .map(([path]) => path)
}

function allImports(files: Map<string, string>): Import[] {
  return [...files].flatMap(([path, text]) => importsOf(path, withoutComments(text)))
}

const statement = /^[ \t]*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?['"]([^'"]+)['"]/gm
const dynamic = /\bimport\s*\(\s*(type\s+)?['"]([^'"]+)['"]/g

function importsOf(from: string, text: string): Import[] {
  return [...text.matchAll(statement), ...text.matchAll(dynamic)].map(([, types, target = '']) => ({
    from,
    to: target.startsWith('.') ? normalize(join(dirname(from), target)) : target,
    types: types !== undefined,
  }))
}

/** Line comments count only after a blank or at the start, so that `https://` in a text is left alone. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')
}

function readSources(): Map<string, string> {
  const root = join(import.meta.dirname, '..', 'src')
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  return new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(root, path), 'utf8')]))
}
