import { spawnSync } from 'node:child_process'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createLog } from '../../src/observe/log.ts'
import { bufferLines, formatJournalLine, formatPlainLine } from '../../src/observe/logDestination.ts'
import { until } from '../support/until.ts'

test('each line begins with journald’s priority for its level, followed by the same JSON', () => {
  const writes: string[] = []
  const log = createLog('info', bufferLines({ write: (text) => void writes.push(text) }, formatJournalLine))
  log.info('a')
  log.warn('b')
  log.error('c')
  log.info('d')
  log.flush()
  expect(linesOf(writes).map((line) => [line.slice(0, 3), JSON.parse(line.slice(3)).event])).toEqual([
    ['<6>', 'a'],
    ['<4>', 'b'],
    ['<3>', 'c'],
    ['<6>', 'd'],
  ])
})

const linesOf = (writes: readonly string[]) => writes.join('').trimEnd().split('\n')

describe('lines of the same moment', () => {
  test('are written together and in order', async () => {
    const writes: string[] = []
    const log = createLog('info', bufferLines({ write: (text) => void writes.push(text) }, formatPlainLine))
    for (const event of ['a', 'b', 'c']) log.info(event)
    expect(writes).toEqual([])
    await until(
      () => writes.length,
      (count) => count > 0,
    )
    expect(linesOf(writes).map((line) => JSON.parse(line).event)).toEqual(['a', 'b', 'c'])
    expect(writes).toHaveLength(1)
  })

  test('are written at once if one is a warning', () => {
    const writes: string[] = []
    const log = createLog('info', bufferLines({ write: (text) => void writes.push(text) }, formatPlainLine))
    log.info('a')
    log.warn('b')
    expect(linesOf(writes).map((line) => JSON.parse(line).event)).toEqual(['a', 'b'])
  })

  test('are written early if there are many', () => {
    const writes: string[] = []
    const log = createLog('info', bufferLines({ write: (text) => void writes.push(text) }, formatPlainLine))
    for (let i = 0; i < 1_000; i++) log.info('a')
    expect(linesOf(writes).length).toBeGreaterThan(500)
    expect(writes.length).toBeLessThan(10)
  })
})

test('lines that cannot be written are counted, and the next line says how many', () => {
  const writes: string[] = []
  let isFull = true
  const write = (text: string) => {
    if (isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    writes.push(text)
  }
  let failures = 0
  const log = createLog(
    'info',
    bufferLines({ write }, formatJournalLine, () => failures++),
  )
  expect(log.fault()).toBeNull()
  log.info('a')
  log.warn('b')
  log.error('c')
  expect(failures).toBe(2) // `a` is written together with `b`
  expect(log.fault()).toBe('no space left on device')
  isFull = false
  expect(log.fault()).toBeNull() // though nothing new was to be written
  log.warn('d')
  log.warn('e')
  const lines = linesOf(writes).filter((line) => line !== '')
  expect(lines.map((line) => [line.slice(0, 3), JSON.parse(line.slice(3))])).toMatchObject([
    ['<4>', { event: 'log lines were lost, because stdout could not be written', count: 3 }],
    ['<4>', { event: 'd' }],
    ['<4>', { event: 'e' }],
  ])
})

const program = `
  import { createLog } from ${JSON.stringify(join(import.meta.dirname, '../../src/observe/log.ts'))}
  import { openStdout } from ${JSON.stringify(join(import.meta.dirname, '../../src/observe/logDestination.ts'))}
  createLog('info', openStdout(process.argv[1], process.argv[2])).warn('told')`

/** Returns what a program with a file as stdout writes. @param stream value of JOURNAL_STREAM; null: that file */
async function written(format: string, stream: string | null): Promise<string> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'outboxd-log-'))
  const path = join(folder.path, 'log')
  const fd = openSync(path, 'w')
  const { dev, ino } = fstatSync(fd)
  const args = ['--input-type=module', '-e', program, format, stream ?? `${dev}:${ino}`]
  const { stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', fd, 'pipe'], encoding: 'utf8' })
  closeSync(fd)
  expect(stderr).toBe('')
  return readFileSync(path, 'utf8')
}

test.each([
  ['auto', null, '<4>{"level":"warn"'],
  ['auto', '7:8', '{"level":"warn"'],
  ['auto', '', '{"level":"warn"'],
  ['json', null, '{"level":"warn"'],
  ['journald', '', '<4>{"level":"warn"'],
])('with format %s and JOURNAL_STREAM %s, a line begins with %s', async (format, stream, beginning) => {
  expect((await written(format, stream)).slice(0, beginning.length)).toBe(beginning)
})
