import { readFileSync } from 'node:fs'

const lookMs = 500

/**
 * Returns a signal that also aborts when the `npx` that started us has ended: `npx` hands on no signal, and a SIGKILL leaves
 * it no time to. Call it before others learn that we run, and may end `npx`.
 *
 * @param signal is returned as it is if no `npx` started us
 */
export function endWithNpx(signal: AbortSignal, env: Record<string, string | undefined>): AbortSignal {
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

/** Names our parent, and its parent if ours is the shell that `npx` starts us with: on Linux that shell outlives `npx`. */
function startersNow(): string {
  try {
    const [, name, parent] = /\((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${process.ppid}/stat`, 'utf8')) ?? []
    return name === 'sh' ? `${process.ppid} ${parent}` : `${process.ppid}`
  } catch {
    return `${process.ppid}` // not Linux: there, the shell becomes the program that it starts
  }
}
