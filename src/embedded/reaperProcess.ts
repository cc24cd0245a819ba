import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Ends these processes and removes these folders if stdin ends without the line `done`: after kill -9 of the starter, a
 * second Ctrl-C, or a closed terminal.
 *
 * Lines of stdin: `process PID SIGNAL`, `ended PID`, `folder PATH`, `done`.
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
// Stops waiting after 5 s, because dead processes stay visible until their parent collects them.
for (let looks = 0; looks < 50 && [...processes.keys()].some((pid) => sendSignal(pid, 0)); looks++) await delay(100)
for (const folder of folders) await rm(folder, { recursive: true, force: true, maxRetries: 5 })

/** Returns false if the process has ended. Signal 0 only tests this. */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
