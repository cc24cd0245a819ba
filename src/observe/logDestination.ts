import { fstatSync, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** `auto` means `journald` if stdout is the journal, else `json`. */
export type LogFormat = 'auto' | 'json' | 'journald'

export interface LineStream extends DestinationStream {
  writeKept(): void
  /** Tries to write how many lines were lost. Says why that fails, too; null if no line is lost. */
  fault(): string | null
}

/**
 * Writes synchronously, so that the last line before an exit is not lost.
 * @param onFailed called each time that stdout cannot be written
 */
export function openStdout(
  format: LogFormat,
  journalStream: string | undefined,
  onFailed: () => void = () => {},
): LineStream {
  const isJournal = format === 'journald' || (format === 'auto' && leadsToJournal(1, journalStream))
  return bufferLines(openDescriptor(1), isJournal ? formatJournalLine : formatPlainLine, onFailed)
}

const readerWaitMs = 100
const readerWaitsMax = 10

/**
 * Returns a stream whose `write` throws if the disk is full, or if a pipe's reader takes nothing for 1 s. Waits for that
 * reader again only after it took something.
 */
function openDescriptor(fd: number): DestinationStream {
  let waits = 0
  return {
    write(text) {
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; ) {
        try {
          at += writeSync(fd, bytes, at)
          waits = 0
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || waits >= readerWaitsMax) throw error
          waits += 1
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, readerWaitMs)
        }
      }
    },
  }
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
 *
 * Drops lines that cannot be written, because a full disk must not stop the daemon. The next write tells their number.
 */
export function bufferLines(to: DestinationStream, shape: LineFormat, onFailed: () => void = () => {}): LineStream {
  let kept = ''
  let lost = 0
  let fault: string | null = null
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
      if (text === '' && lost === 0) return
      try {
        // The line break ends a line of which only a part was written.
        to.write(lost === 0 ? text : `\n${shape(lostLinesNote(lost), warning)}${text}`)
        lost = 0
        fault = null
      } catch (error) {
        lost += text.split('\n').length - 1
        fault = (error as Error).message
        onFailed()
      }
    },
    fault() {
      if (lost > 0) lines.writeKept()
      return fault
    },
  }
  return lines
}

const lostLinesNote = (count: number): string =>
  `${JSON.stringify({
    level: 'warn',
    time: new Date().toISOString(),
    event: 'log lines were lost, because stdout could not be written',
    count,
  })}\n`
