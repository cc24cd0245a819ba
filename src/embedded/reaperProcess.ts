import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Ends the processes of its starter, and removes its folders, when its stdin ends without a `done`: after kill -9, a
 * second Ctrl-C, or a closed terminal.
 *
 * Lines it reads: `process PID SIGNAL`, `ended PID`, `folder PATH`, `done`.
 */
const processes = new Map<number, NodeJS.Signals>()
const folders = new Set<string>()

for await (const line of createInterface({ input: process.stdin })) {
  const [word, first = '', second] = line.split(' ')
  if (word === 'process') processes.set(Number(first), second as NodeJS.Signals)
  if (word === 'ended') processes.delete(Number(first))
  if (word === 'folder') folders.add(line.slice('folder '.length))
  if (word === 'done') {
    processes.clear()
    folders.clear()
  }
}

for (const [pid, signal] of processes) sendSignal(pid, signal)
// Bounded, because dead processes that their parent does not collect stay visible for ever.
for (let looks = 0; looks < 50 && [...processes.keys()].some((pid) => sendSignal(pid, 0)); looks++) await delay(100)
for (const folder of folders) await rm(folder, { recursive: true, force: true, maxRetries: 5 })

/** Returns false if the process has ended. Signal 0 only asks. */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
