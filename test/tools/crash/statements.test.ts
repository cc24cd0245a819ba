import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { type Statements, watchStatements } from '../../../tools/crash/statements.ts'
import { createDatabase } from '../../support/database.ts'
import { openForFile } from '../../support/openForFile.ts'
import { checkout, type Program, startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'

const begin = 'begin'
const insert = 'insert into row values (#) /* # */'
const commit = `commit after ${insert}`

const database = openForFile(() => createDatabase('template0'))
let statements: Statements
beforeAll(async () => {
  await database.pool.query('create table row (n int)')
})
beforeEach(async () => {
  statements = await watchStatements({ dir: join(checkout, 'tools', 'crash') })
  await statements.endIdle()
  await database.pool.query('truncate row')
  return () => statements[Symbol.asyncDispose]()
})

const start = (...args: string[]): Program =>
  startProgram({
    script: join(import.meta.dirname, 'insertRow.ts'),
    args,
    env: { ...statements.env, DATABASE_URL: database.url },
  })

async function countRows(): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>('select count(*)::int as n from row')
  return rows[0]?.n ?? -1
}

test('armed programs kill themselves once before and once after each statement', async () => {
  await statements.arm()
  const ends: unknown[] = []
  for (let run = 1; run <= 7; run++) {
    const { code, signal, stdout, stderr } = await start().ended()
    ends.push([stderr, stdout.includes('committed'), code ?? signal, await countRows()])
  }
  expect(ends).toEqual([
    [`struck by SIGKILL before ${begin}\n`, false, 'SIGKILL', 0],
    [`struck by SIGKILL after ${begin}\n`, false, 'SIGKILL', 0],
    [`struck by SIGKILL before ${insert}\n`, false, 'SIGKILL', 0],
    [`struck by SIGKILL after ${insert}\n`, false, 'SIGKILL', 0],
    [`struck by SIGKILL before ${commit}\n`, false, 'SIGKILL', 0],
    [`struck by SIGKILL after ${commit}\n`, false, 'SIGKILL', 1],
    ['', true, 0, 2],
  ])
  const struck = await statements.readStruck()
  expect(struck).toHaveLength(6)
  expect(struck).toContainEqual({ statement: commit, when: 'after' })
})

test('disarmed programs only write their statements down', async () => {
  await statements.arm()
  await statements.disarm()
  expect(await start().ended()).toMatchObject({ code: 0 })
  expect(await statements.readWay()).toEqual([begin, insert, commit])
  expect(await statements.readStruck()).toEqual([])
})

test('a program stops itself at the planned statement, and goes on from there', async () => {
  await using program = start('waits')
  await program.line((line) => line === 'connected')
  await statements.plan(program.pid, { nth: 2, when: 'after', signal: 'SIGSTOP' })
  program.signal('SIGUSR2')
  expect(await program.line((line) => line.startsWith('struck'))).toBe(`struck by SIGSTOP after ${insert}`)
  // The line comes just before the stop: a SIGCONT before it would be lost.
  await until(
    () => readFile(`/proc/${program.pid}/stat`, 'utf8'),
    (stat) => /\) T /.test(stat),
  )
  expect(await countRows()).toBe(0)
  program.signal('SIGCONT')
  expect(await program.ended()).toMatchObject({ code: 0 })
  expect(await countRows()).toBe(1)
})
