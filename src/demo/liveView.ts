import { styleText } from 'node:util'
import type { State } from '../model.ts'
import type { Progress } from './progress.ts'

/** Shows the records while they travel. */
export interface LiveView {
  /** Milliseconds between two looks that make sense for it. */
  readonly everyMs: number
  show(progress: Progress): void
}

/** What of a terminal's stream is used; a pipe has neither. */
export type Screen = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

/** Redraws a few lines in place on a terminal; anywhere else writes one line every two seconds. */
export function createLiveView(screen: Screen): LiveView {
  return screen.isTTY ? redrawing(screen) : writingLines(screen)
}

function redrawing(screen: Screen): LiveView {
  let drawn = 0
  return {
    everyMs: 200,
    show(progress) {
      const lines = frame(progress, Math.max(20, (screen.columns || 80) - 1))
      const back = drawn > 0 ? `\x1b[${drawn}A\x1b[0J` : ''
      const [first = '', ...rest] = lines
      screen.write(`${back}${[styleText('bold', first, { stream: screen }), ...rest].join('\n')}\n`)
      drawn = lines.length
    },
  }
}

const lineEveryMs = 2_000

function writingLines(screen: Screen): LiveView {
  let shownMs = Number.NEGATIVE_INFINITY
  return {
    everyMs: 250,
    show(progress) {
      const isLast = progress.done === progress.total
      if (!isLast && progress.elapsedMs - shownMs < lineEveryMs) return
      shownMs = progress.elapsedMs
      screen.write(`${line(progress)}\n`)
    },
  }
}

const always: readonly State[] = ['queued', 'sending', 'accepted', 'completed', 'rejected']
const onlyIfAny: readonly State[] = ['failed', 'uncertain', 'discarded']

/** The picture for a terminal; a line never wraps, or it could not be redrawn. */
export function frame(progress: Progress, columns: number): string[] {
  const { total, done, inOutbox, states, budgetFree, budgetAll } = progress
  const shown = [...always, ...onlyIfAny.filter((state) => states[state] > 0)]
  const rows: [string, number][] = [
    ['in the outbox', inOutbox],
    ...shown.map((state): [string, number] => [state, states[state]]),
  ]
  return [
    `${done} of ${total} through ${bar(done, total)} ${times(progress)}`,
    ...rows.map(([name, n]) => `  ${name.padEnd(13)} ${String(n).padStart(5)} ${'█'.repeat(barLength(n, total))}`),
    ...(budgetAll > 0
      ? [
          `  budget        ${String(budgetFree).padStart(5)} ${bar(budgetFree, budgetAll)} of ${budgetAll} requests a minute are free${pauses(progress)}`,
        ]
      : []),
  ].map((text) => [...text].slice(0, columns).join(''))
}

/** The same in one line. */
export function line(progress: Progress): string {
  const { total, done, inOutbox, states } = progress
  const counts = [...always, ...onlyIfAny]
    .filter((state) => states[state] > 0)
    .map((state) => `${states[state]} ${state}`)
  const where = [...(inOutbox > 0 ? [`${inOutbox} in the outbox`] : []), ...counts].join(', ')
  return `${done} of ${total} through, ${times(progress)}: ${where || 'nothing captured yet'}${budget(progress)}${pauses(progress)}`
}

/** Nothing before a daemon has made the slots. */
function budget({ budgetFree, budgetAll }: Progress): string {
  return budgetAll > 0 ? `; ${budgetFree} of ${budgetAll} requests free` : ''
}

function times({ elapsedMs, leftMs }: Progress): string {
  return `after ${duration(elapsedMs)}${leftMs > 0 ? `, about ${duration(leftMs)} to go` : ''}`
}

function pauses({ pauses: reasons }: Progress): string {
  return reasons.length > 0 ? `; paused: ${reasons.join(', ')}` : ''
}

/** `8 s`, `3 min 20 s`. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

const barColumns = 30

function barLength(part: number, whole: number): number {
  return whole > 0 ? Math.min(barColumns, Math.ceil((part / whole) * barColumns)) : 0
}

function bar(part: number, whole: number): string {
  const full = barLength(part, whole)
  return '█'.repeat(full) + '░'.repeat(barColumns - full)
}
