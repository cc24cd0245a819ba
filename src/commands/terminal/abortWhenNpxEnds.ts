import { readFileSync } from 'node:fs'

const lookMs = 500

/**
 * The signal also aborts when the `npx` that started this process ends, because `npx` passes no signal on. Call this
 * function before printing that the program is ready.
 * @param signal returned unchanged if `npx` did not start the process
 */
export function abortWhenNpxEnds(signal: AbortSignal, env: Record<string, string | undefined>): AbortSignal {
  if (env.npm_command !== 'exec') return signal
  const starters = startersNow()
  const gone = new AbortController()
  const looking = setInterval(() => {
    if (startersNow() === starters) return
    clearInterval(looking)
    gone.abort()
  }, lookMs).unref()
  return AbortSignal.any([signal, gone.signal])
}

/** If the parent is the shell of `npx`, adds the id of `npx`, because the shell outlives `npx`. */
function startersNow(): string {
  try {
    const [, name, parent] = /\((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${process.ppid}/stat`, 'utf8')) ?? []
    return name === 'sh' ? `${process.ppid} ${parent}` : `${process.ppid}`
  } catch {
    return `${process.ppid}` // not Linux
  }
}
