import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'

/** design.md, section 11: main -> commands -> app -> stages, service, store, observe -> record. */

const stages = ['capture', 'map', 'submit', 'track', 'dispatch']
const adapters = ['service', 'store', 'observe']

interface Import {
  /** The importing file, from src/, such as `track/schedule.ts`. */
  from: string
  /** The imported file from src/, or a package's or node:'s name. */
  to: string
  /** Whether types alone are imported. */
  types: boolean
}

interface Rule {
  says: string
  breaks: (edge: Import) => boolean
}

const rules: Rule[] = [
  {
    says: 'record.ts and clock.ts import nothing',
    breaks: ({ from }) => from === 'record.ts' || from === 'clock.ts',
  },
  {
    says: 'config.ts imports no other file of ours: everyone may have its types',
    breaks: ({ from, to }) => from === 'config.ts' && isOurs(to),
  },
  {
    says: 'a stage imports only its own folder, record.ts, clock.ts and types of config.ts: app.ts hands it the rest',
    breaks: (edge) => stages.includes(folder(edge.from)) && isOurs(edge.to) && !isOwnOrShared(edge),
  },
  {
    says: 'a stage uses no database, network, log or metrics package: that is what adapters are for',
    breaks: ({ from, to }) => stages.includes(folder(from)) && adapterPackages.includes(to),
  },
  {
    says: 'service, store and observe import only their own folder, record.ts, clock.ts and types of config.ts',
    breaks: (edge) => adapters.includes(folder(edge.from)) && isOurs(edge.to) && !isOwnOrShared(edge),
  },
  {
    says: 'app.ts imports no command, not main.ts, not the sandbox, not the demo',
    breaks: ({ from, to }) => from === 'app.ts' && (to === 'main.ts' || isIn(to, 'commands', 'sandbox', 'demo')),
  },
  {
    says: 'main.ts reaches stages, service, store, the sandbox and the demo through commands alone',
    breaks: ({ from, to }) => from === 'main.ts' && isIn(to, ...stages, 'service', 'store', 'sandbox', 'demo'),
  },
  { says: 'nobody imports main.ts', breaks: ({ to }) => to === 'main.ts' },
  {
    says: 'commands are imported by main.ts and each other alone',
    breaks: ({ from, to }) => isIn(to, 'commands') && from !== 'main.ts' && !isIn(from, 'commands'),
  },
  {
    says: 'app.ts is imported by commands alone',
    breaks: ({ from, to }) => to === 'app.ts' && !isIn(from, 'commands'),
  },
  {
    says: 'the sandbox imports nothing from the rest, so that neither can hide the other’s mistake',
    breaks: ({ from, to }) => isIn(from, 'sandbox') && isOurs(to) && !isIn(to, 'sandbox'),
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
    says: 'src/service is the only importer of undici',
    breaks: ({ from, to }) => to === 'undici' && !isIn(from, 'service'),
  },
  {
    says: 'store/queue.ts and the sandbox are the only importers of pg-boss',
    breaks: ({ from, to }) => to === 'pg-boss' && from !== 'store/queue.ts' && !isIn(from, 'sandbox'),
  },
  {
    says: 'only store, the sandbox and the demo import pg: all the SQL is there',
    breaks: ({ from, to }) =>
      isOneOf(to, 'pg', 'node-pg-migrate') && !isIn(from, 'store', 'sandbox', 'demo') && from !== 'commands/demo.ts',
  },
  {
    says: 'src/observe is the only importer of pino and prom-client',
    breaks: ({ from, to }) => isOneOf(to, 'pino', 'prom-client') && !isIn(from, 'observe'),
  },
  {
    says: 'the sandbox is the only importer of fastify',
    breaks: ({ from, to }) => (to === 'fastify' || to.startsWith('@fastify/')) && !isIn(from, 'sandbox'),
  },
]

const adapterPackages = ['undici', 'pg', 'pg-boss', 'node-pg-migrate', 'pino', 'prom-client', 'fastify', 'node:http']

const onlyMain = 'only main.ts reads process.env, listens to signals and sets exit codes'
const processMessage =
  /\bprocess\s*\.\s*(env|on|once|exit|exitCode|addListener)\b|\bnode:process\b|\{[^}]*\}\s*=\s*process\b/

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

test('no files of ours import each other in a circle, but for types', () => {
  expect(circles(allImports(sources))).toEqual([])
})

/** Each rule must see what it forbids; a rule that never fires keeps nothing true. */
describe('the rules themselves', () => {
  test.each([
    ['record.ts', `import { z } from 'zod'`],
    ['config.ts', `import { states } from './record.ts'`],
    ['track/schedule.ts', `import { decide } from '../submit/decide.ts'`],
    ['dispatch/dispatch.ts', `import type { Budget } from '../store/budget.ts'`],
    ['capture/capture.ts', `import { readConfig } from '../config.ts'`],
    ['map/map.ts', `import pg from 'pg'`],
    ['store/ledger.ts', `import {\n  type Log,\n  createLog,\n} from '../observe/log.ts'`],
    ['app.ts', `import { run } from './commands/run.ts'`],
    ['main.ts', `import { createLedger } from './store/ledger.ts'`],
    ['app.ts', `import './main.ts'`],
    ['store/ledger.ts', `import { run } from '../commands/run.ts'`],
    ['store/ledger.ts', `const app = await import('../app.ts')`],
    ['sandbox/server.ts', `import { states } from '../record.ts'`],
    ['commands/run.ts', `import { startSandbox } from '../sandbox/sandbox.ts'`],
    ['commands/run.ts', `import { startEmbeddedPostgres } from '../demo/embeddedPostgres.ts'`],
    ['commands/check.ts', `import { request } from 'undici'`],
    ['store/ledger.ts', `export { PgBoss } from 'pg-boss'`],
    ['commands/list.ts', `import type { Pool } from 'pg'`],
    ['commands/run.ts', `import { pino } from 'pino'`],
    ['observe/httpServer.ts', `import fastify from 'fastify'`],
  ])('%s with %s is caught', (path, text) => {
    const edges = allImports(new Map([[path, text]]))
    expect(edges).toHaveLength(1)
    expect(rules.filter(({ breaks }) => edges.some(breaks))).not.toEqual([])
  })

  test.each([
    ['track/schedule.ts', `import type { State } from '../record.ts'`],
    ['track/track.ts', `import { nextPollMs } from './schedule.ts'`],
    ['submit/submit.ts', `import type { Config } from '../config.ts'`],
    ['map/mapping.ts', `import { z } from 'zod'\nimport { parse } from 'yaml'`],
    ['commands/sandbox.ts', `import { startSandbox } from '../sandbox/sandbox.ts'`],
    ['store/queue.ts', `import { PgBoss } from 'pg-boss'\nimport pg from 'pg'`],
    [
      'app.ts',
      `import { createLedger } from './store/ledger.ts'\nimport { createMetrics } from './observe/metrics.ts'`,
    ],
    ['store/ledger.ts', `// as import x from '../app.ts' would\nimport { states } from '../record.ts'`],
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

  test('a circle of two is caught, one of types is not', () => {
    const edge = { from: 'a.ts', to: 'b.ts', types: false }
    expect(circles([edge, { from: 'b.ts', to: 'a.ts', types: false }])).toEqual(['a.ts', 'b.ts'])
    expect(circles([edge, { from: 'b.ts', to: 'a.ts', types: true }])).toEqual([])
  })

  test('speaking of process.env in a comment is no use of it', () => {
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

function isIn(path: string, ...folders: string[]): boolean {
  return isOurs(path) && folders.includes(folder(path))
}

function isOneOf(path: string, ...paths: string[]): boolean {
  return paths.includes(path)
}

function isOurs(path: string): boolean {
  return path.endsWith('.ts')
}

function isOwnOrShared({ from, to, types }: Import): boolean {
  return folder(from) === folder(to) || to === 'record.ts' || to === 'clock.ts' || (to === 'config.ts' && types)
}

function inMessage({ from, to }: Import): string {
  return `src/${from} imports ${isOurs(to) ? `src/${to}` : to}`
}

function readersOfProcess(files: Map<string, string>): string[] {
  return [...files]
    .filter(([path, text]) => path !== 'main.ts' && processMessage.test(withoutComments(text)))
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
