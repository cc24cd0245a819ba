import { readdirSync, readFileSync } from 'node:fs'

/** What processes have used since their start, from Linux's /proc. */
export interface Usage {
  atMs: number
  /** CPU time of the daemon (or its stand-in) and of the whole PostgreSQL server, milliseconds. */
  daemonCpuMs: number
  postgresCpuMs: number
}

/** A tick of /proc's clock is 10 ms on every Linux that Node runs on. */
const tickMs = 10

export function readUsage(daemonPid: number, postmasterPid: number): Usage {
  return { atMs: performance.now(), daemonCpuMs: cpuMs(daemonPid), postgresCpuMs: serverCpuMs(postmasterPid) }
}

/** CPU time that all threads of a process have used, milliseconds. */
export function cpuMs(pid: number): number {
  const stat = statOf(pid)
  return stat === null ? 0 : (stat.user + stat.system) * tickMs
}

/** A process's memory: resident now and at its highest, megabytes. */
export function memoryMb(pid: number): { residentMb: number; peakMb: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024
  return { residentMb: mb('VmRSS'), peakMb: mb('VmHWM') }
}

/** The postmaster's count includes backends that have ended. Running backends have their own counts. */
function serverCpuMs(postmasterPid: number): number {
  const postmaster = statOf(postmasterPid)
  if (postmaster === null) return 0
  const ended = postmaster.user + postmaster.system + postmaster.childUser + postmaster.childSystem
  const living = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOf(Number(name)))
    .filter((stat) => stat?.parent === postmasterPid)
    .reduce((sum, stat) => sum + (stat ? stat.user + stat.system : 0), 0)
  return (ended + living) * tickMs
}

/** Fields of proc(5)'s stat, counted after the process name, which may contain any character. */
function statOf(pid: number) {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null // ended in the meantime
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const field = (position: number) => Number(fields[position - 3])
  return { parent: field(4), user: field(14), system: field(15), childUser: field(16), childSystem: field(17) }
}
