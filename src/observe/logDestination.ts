import { fstatSync } from 'node:fs'
import { type DestinationStream, destination } from 'pino'

/** `auto`: as journald reads it where stdout is the journal, else JSON lines alone. */
export type LogFormat = 'auto' | 'json' | 'journald'

/** Stdout, written synchronously, so that the last line before an end is not lost. @param journalStream what JOURNAL_STREAM says */
export function openStdout(format: LogFormat, journalStream: string | undefined): DestinationStream {
  const stdout = destination({ fd: 1, sync: true })
  const isJournal = format === 'journald' || (format === 'auto' && leadsToJournal(1, journalStream))
  return isJournal ? withPriorities(stdout) : stdout
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

/**
 * Begins each line with its priority, as sd-daemon(3) has it: journald takes `<3>` for an error and off the message, so
 * that `journalctl -p warning` finds what matters.
 */
export function withPriorities(to: DestinationStream): DestinationStream {
  const lines = {
    // Pino then says which level the line is of.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 30,
    write(line: string) {
      to.write(`<${priorities[lines.lastLevel] ?? 6}>${line}`)
    },
  }
  return lines
}
