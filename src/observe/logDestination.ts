import { fstatSync } from 'node:fs'
import { type DestinationStream, destination } from 'pino'

/** `auto` means `journald` if stdout is the journal, else `json`. */
export type LogFormat = 'auto' | 'json' | 'journald'

export interface LineStream extends DestinationStream {
  writeKept(): void
}

/**
 * Writes synchronously, so that the last line before an exit is not lost.
 *
 * @param journalStream the value of JOURNAL_STREAM
 */
export function openStdout(format: LogFormat, journalStream: string | undefined): LineStream {
  const stdout = destination({ fd: 1, sync: true })
  const isJournal = format === 'journald' || (format === 'auto' && leadsToJournal(1, journalStream))
  return bufferLines(stdout, isJournal ? formatJournalLine : formatPlainLine)
}

/** Compares device and inode (systemd.exec(5)), because stdout may be redirected. */
function leadsToJournal(fd: number, journalStream: string | undefined): boolean {
  if (!journalStream) return false
  try {
    const { dev, ino } = fstatSync(fd)
    return journalStream === `${dev}:${ino}`
  } catch {
    return false
  }
}

/** Syslog's numbers (RFC 5424, 6.2.1) by pino's levels. */
const priorities: Readonly<Record<number, number>> = { 30: 6, 40: 4, 50: 3 }

type LineFormat = (line: string, level: number) => string

export const formatPlainLine: LineFormat = (line) => line

/** Puts the priority before the line (sd-daemon(3)), so that `journalctl -p warning` works. */
export const formatJournalLine: LineFormat = (line, level) => `<${priorities[level] ?? 6}>${line}`

const keptMs = 10
const keptMaxChars = 16_384
const warning = 40

/**
 * Writes the lines of 10 ms together, because each write wakes the reader, which cost a sixth of the CPU under load.
 * Writes a warning or error at once, with all lines before it. SIGKILL loses the last 10 ms.
 */
export function bufferLines(to: DestinationStream, shape: LineFormat): LineStream {
  let kept = ''
  let timer: NodeJS.Timeout | undefined
  const lines = {
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
