import type { StatusReport } from './readStatus.ts'
import { renderStatus, renderStatusLine } from './renderStatus.ts'
import { statusJson } from './statusJson.ts'
import { escapeControl } from './table.ts'
import { isoTime, showDuration, showTime } from './time.ts'

/** Shows one report after the other. */
export interface StatusView {
  show(report: StatusReport): void
  /** The ledger could not be read. @param nowMs on this machine's clock */
  failed(message: string, nowMs: number): void
}

/** What of a terminal's stream is used; a pipe has none of it. */
export type Screen = NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number }

/** Redraws a terminal; anywhere else each report is one line. */
export function createStatusView(screen: Screen, options: { json: boolean; everyMs: number }): StatusView {
  if (options.json) return writingJson(screen)
  return screen.isTTY ? redrawing(screen, options.everyMs) : writingLines(screen)
}

const unreadable = (message: string) => `The ledger cannot be read, and is asked again: ${message}`

function writingJson(screen: Screen): StatusView {
  const write = (document: object) => void screen.write(`${JSON.stringify(document)}\n`)
  return {
    show: (report) => write(statusJson(report)),
    failed: (message, nowMs) =>
      write({
        at: isoTime(nowMs),
        well: false,
        headlines: [unreadable(message)],
      }),
  }
}

function writingLines(screen: Screen): StatusView {
  return {
    show: (report) => void screen.write(renderStatusLine(report)),
    failed: (message, nowMs) =>
      void screen.write(`${escapeControl(`${showTime(nowMs)} ${unreadable(message.replace(/\s+/g, ' '))}`)}\n`),
  }
}

const home = '\x1b[H'
const eraseScreen = '\x1b[2J'
const eraseToEndOfLine = '\x1b[K'
const eraseBelow = '\x1b[J'

function redrawing(screen: Screen, everyMs: number): StatusView {
  let before = eraseScreen
  const draw = (text: string, nowMs: number) => {
    const head = `outboxd status at ${showTime(nowMs)}, every ${showDuration(everyMs)}; Ctrl-C ends it`
    const shown = fitWindow([head, '', ...text.trimEnd().split('\n')], {
      columns: screen.columns || 80,
      rows: screen.rows || 24,
    })
    screen.write(`${before}${home}${shown.map((line) => `${line}${eraseToEndOfLine}\n`).join('')}${eraseBelow}`)
    before = ''
  }
  return {
    show: (report) => draw(renderStatus(report), report.nowMs),
    failed: (message, nowMs) =>
      draw(
        message
          .split('\n')
          .map((part) => escapeControl(unreadable(part)))
          .join('\n'),
        nowMs,
      ),
  }
}

/** As many of the lines as a terminal shows at once, its last row left free for the cursor; long lines wrap. Pure. */
export function fitWindow(lines: readonly string[], { columns, rows }: { columns: number; rows: number }): string[] {
  const heights = lines.map((line) => Math.max(1, Math.ceil(line.length / columns)))
  const room = rows - 1
  if (heights.reduce((sum, height) => sum + height, 0) <= room) return [...lines]
  let used = 0
  const fitting = lines.filter((_, i) => {
    used += heights[i] ?? 1
    return used <= room - 1
  })
  return [...fitting, '… more than the window shows'.slice(0, columns)]
}
