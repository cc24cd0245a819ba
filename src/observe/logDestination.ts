import { fstatSync } from 'node:fs'
import { type DestinationStream, destination } from 'pino'

/** `auto`: journald if stdout is the journal. */
export type LogFormat = 'auto' | 'json' | 'journald'

export interface LineStream extends DestinationStream {
  writeKept(): void
}

/**
 * Writes synchronously, so that the last line before an end is not lost.
 *
 * @param journalStream the value of JOURNAL_STREAM
 */
export function openStdout(format: LogFormat, journalStream: string | undefined): LineStream {
  const stdout = destination({ fd: 1, sync: true })
  const isJournal = format === 'journald' || (format === 'auto' && leadsToJournal(1, journalStream))
  return bufferLines(stdout, isJournal ? shapeJournalLine : shapePlainLine)
}

/** systemd names the device and inode of its stream (systemd.exec(5)), from which a redirected stdout differs. */
function leadsToJournal(fd: number, journalStream: string | undefined): boolean {
  if (!journalStream) return false
  try {
    const { dev, ino } = fstatSync(fd)
    return journalStream === `${dev}:${ino}`
  } catch {
    return false
  }
}

/** Syslog's numbers (RFC 5424, 6.2.1) for pino's. */
const priorities: Readonly<Record<number, number>> = { 30: 6, 40: 4, 50: 3 }

type Shape = (line: string, level: number) => string

export const shapePlainLine: Shape = (line) => line

/** Writes the priority first (sd-daemon(3)), for `journalctl -p warning`. */
export const shapeJournalLine: Shape = (line, level) => `<${priorities[level] ?? 6}>${line}`

const keptMs = 10
const keptMaxChars = 16_384
const warning = 40

/**
 * Writes lines together, because each write wakes the reader, which under load cost a sixth of the daemon's CPU. Writes
 * a warning or error at once, with all lines before it. SIGKILL loses the last 10 ms.
 */
export function bufferLines(to: DestinationStream, shape: Shape): LineStream {
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
