import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

/** docs/why/architecture.md, "What may import what". The linter finds circles (noImportCycles). */

const src = join(import.meta.dirname, '..', 'src')
/** Each import of the source, as `FILE imports FILE` or `FILE imports PACKAGE`; files are given from src/. */
const imports = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .flatMap((file) => {
    const lines = readFileSync(join(src, file), 'utf8').matchAll(
      /(?:^(?:import|export|}).* from |^import |\bimport\()'([^']+)'/gm,
    )
    return [...lines].map(([, to = '']) => `${file} imports ${to.startsWith('.') ? join(dirname(file), to) : to}`)
  })

const decider =
  /^(mapping|model|yaml|daemon\/pollSchedule\.ts|daemon\/(dispatch\/)?(decide\w+|interpretAttempt|planRound)\.ts)\b/
const adapter =
  / imports (ledger|outbox|postgres|service|observe|operations|commands|console|pg|pg-boss|undici|pino|prom-client|fastify|node:https?|node:net)\b/

test('what decides or maps imports no database, no network, no log and no metrics', () => {
  const deciding = imports.filter((each) => decider.test(each))
  expect(deciding.length).toBeGreaterThan(50)
  expect(deciding.filter((each) => adapter.test(each))).toEqual([])
})

test('of our files the sandbox imports only the embedded Postgres, yaml and the package’s folder, so that it cannot repeat a mistake of the client', () => {
  const ofSandbox = imports.filter((each) => each.startsWith('sandbox/') && each.endsWith('.ts'))
  expect(ofSandbox.length).toBeGreaterThan(50)
  expect(
    ofSandbox.filter((each) => !/ imports ((sandbox|embedded|yaml)\/|(packageFolder|olderNodes)\.ts)/.test(each)),
  ).toEqual([])
})

/** The lowest first. */
const layers = [
  ...['yaml', 'model', 'postgres', 'mapping', 'service', 'observe', 'ledger', 'outbox'],
  ...['daemon', 'describe', 'discover', 'operations', 'console', 'demo', 'commands', 'main.ts'],
]

test('no folder imports one of a higher layer', () => {
  const layerOf = (file = '') => layers.indexOf(file.split('/')[0] ?? '')
  const between = imports.filter((each) => each.split(' imports ').every((file) => layerOf(file) >= 0))
  expect(between.length).toBeGreaterThan(500)
  const upward = between.filter((each) => {
    const [from, to] = each.split(' imports ')
    return layerOf(to) > layerOf(from)
  })
  expect(upward).toEqual([])
})

test('only the commands sandbox and demo import the sandbox', () => {
  const starting = imports.filter((each) => / imports sandbox\//.test(each) && !each.startsWith('sandbox/'))
  expect(starting.length).toBeGreaterThan(0)
  expect(starting.filter((each) => !/^(demo\/|commands\/(demo|sandbox)\.ts )/.test(each))).toEqual([])
})
