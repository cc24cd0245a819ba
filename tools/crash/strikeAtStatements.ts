import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import type { Strike } from './statements.ts'

/**
 * Loaded into each daemon by `node --import`. Writes each distinct statement of the daemon into a folder, and lets the
 * process kill or stop itself just before it sends a statement, or when the answer has come and the caller has not seen
 * it yet. statements.ts is the campaign's side, and says what the folder contains.
 */

const folder = process.env.CRASH_STATEMENTS ?? ''

const seenFile = join(folder, 'seen')
const seen = new Set(readFileSync(seenFile, 'utf8').split('\n'))
const lastTexts = new WeakMap<object, string>()
let idle: ReadonlySet<string> | null = null
let plan: Strike | null = null

process.on('SIGUSR2', () => {
  plan = JSON.parse(readFileSync(join(folder, 'plans', String(process.pid)), 'utf8')) as Strike
})

type AnyFunction = (...args: unknown[]) => unknown
const { prototype } = pg.Client as unknown as { prototype: { query: AnyFunction } }
const { query } = prototype

prototype.query = function (this: object, ...args: unknown[]) {
  const name = nameOf(this, args[0])
  note(name)
  const isPlanned = isOnWay(name) && plan !== null && --plan.nth === 0
  strike(name, 'before', isPlanned)
  const at = args.findIndex((each) => typeof each === 'function')
  if (at === -1) return (query.apply(this, args) as Promise<unknown>).finally(() => strike(name, 'after', isPlanned))
  const callback = args[at] as AnyFunction
  const strikeFirst = (...answer: unknown[]) => {
    strike(name, 'after', isPlanned)
    callback(...answer)
  }
  return query.apply(this, args.with(at, strikeFirst))
}

/** The text without numbers and UUIDs, because some name a session. A COMMIT is named after the statement before it. */
function nameOf(client: object, statement: unknown): string {
  const text = (typeof statement === 'string' ? statement : (statement as { text: string }).text)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}/g, '#')
    .replaceAll(/\b\d+\b/g, '#')
    .trim()
  const last = lastTexts.get(client)
  lastTexts.set(client, text)
  return /^(commit|rollback)$/i.test(text) ? `${text} after ${last}` : text
}

function note(name: string): void {
  if (seen.has(name)) return
  seen.add(name)
  appendFileSync(seenFile, `${name}\n`)
}

/** True if the statement is on the way of a record, which is known once idle daemons have been watched. */
function isOnWay(name: string): boolean {
  const file = join(folder, 'idle')
  if (idle === null && existsSync(file)) idle = new Set(JSON.parse(readFileSync(file, 'utf8')) as string[])
  return idle !== null && !idle.has(name)
}

function strike(name: string, when: Strike['when'], isPlanned: boolean): void {
  if (isPlanned && plan?.when === when) {
    const { signal } = plan
    plan = null
    strikeNow(name, when, signal)
  } else if (existsSync(join(folder, 'armed')) && isOnWay(name) && isFirstOfAll(name, when))
    strikeNow(name, when, 'SIGKILL')
}

/** True once for all daemons that share the folder. */
function isFirstOfAll(name: string, when: Strike['when']): boolean {
  try {
    writeFileSync(join(folder, 'struck', `${createHash('sha1').update(name).digest('hex')} ${when}`), name, {
      flag: 'wx',
    })
    return true
  } catch {
    return false
  }
}

/** Writes the line at once, so that the campaign reads it before it learns that the process ended. */
function strikeNow(name: string, when: Strike['when'], signal: Strike['signal']): void {
  writeSync(2, `struck by ${signal} ${when} ${name.slice(0, 200)}\n`)
  process.kill(process.pid, signal)
}
