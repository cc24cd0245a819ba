import { fstatSync } from 'node:fs'
import { type DestinationStream, destination } from 'pino'

/** `auto`: as journald reads it if stdout is the journal, else plain JSON lines. */
export type LogFormat = 'auto' | 'json' | 'journald'

/** Takes lines, and may keep some for a moment. */
export interface LineStream extends DestinationStream {
  /** Writes what is kept. */
  writeKept(): void
}

/** Stdout, written synchronously, so that the last line before an end is not lost. @param journalStream what JOURNAL_STREAM says */
export function openStdout(format: LogFormat, journalStream: string | undefined): LineStream {
  const stdout = destination({ fd: 1, sync: true })
  const isJournal = format === 'journald' || (format === 'auto' && leadsToJournal(1, journalStream))
  return together(stdout, isJournal ? withPriority : asItIs)
}

/** systemd names device and inode of the stream that it made: a program's own redirection leads elsewhere (systemd.exec(5)). */
function leadsToJournal(fd: number, journalStream: string | undefined): boolean {
  if (!journalStream) return false
  try {
    const { dev, ino } = fstatSync(fd)
    return journalStream === `${dev}:${ino}`
  } catch {
    return false
  }
}

/** The numbers of syslog (RFC 5424, 6.2.1) for pino's. */
const priorities: Readonly<Record<number, number>> = { 30: 6, 40: 4, 50: 3 }

/** How a line of a level is written. */
type Shape = (line: string, level: number) => string

export const asItIs: Shape = (line) => line

/**
 * Begins a line with its priority, as sd-daemon(3) has it: journald takes `<3>` for an error and off the message, so
 * that `journalctl -p warning` finds what matters.
 */
export const withPriority: Shape = (line, level) => `<${priorities[level] ?? 6}>${line}`

const keptMs = 10
const keptMaxChars = 16_384
const warning = 40

/**
 * Writes the lines of one moment together: each write wakes the reader, and under load two a record cost a sixth of
 * the daemon's CPU. A warning or an error is written at once, with all lines before it. Only SIGKILL takes along the lines
 * of the last 10 ms; what they were about is in the ledger.
 */
export function together(to: DestinationStream, shape: Shape): LineStream {
  let kept = ''
  let timer: NodeJS.Timeout | undefined
  const lines = {
    // Pino then says which level the line is of.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 30,
    write(line: string) {
      kept += shape(line, lines.lastLevel)
      if (lines.lastLevel >= warning || kept.length > keptMaxChars) lines.writeKept()
      else timer ??= setTimeout(lines.writeKept, keptMs)
    },
    writeKept() {
      clearTimeout(timer)
      timer = undefined
      const text = kept
      kept = ''
      if (text !== '') to.write(text)
    },
  }
  return lines
}
