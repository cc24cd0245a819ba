// The image's health check: whether the daemon is worth keeping or, where the container runs the sandbox, whether that answers.
import { readFileSync } from 'node:fs'

const timeoutMs = 4_000

/**
 * Where to ask. Several containers may share one network, so the container's own command says whose health it is.
 *
 * @param {string} command of the container's first process, as /proc has it
 * @param {Record<string, string | undefined>} env
 */
export function healthAddress(command, env) {
  const isSandbox = command.split('\0').includes('sandbox')
  const host = (isSandbox ? env.SANDBOX_HOST : env.HTTP_HOST) || '127.0.0.1'
  const port = (isSandbox ? env.SANDBOX_PORT : env.HTTP_PORT) || (isSandbox ? '8080' : '9464')
  return `http://${reachable[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}${isSandbox ? '/openapi.json' : '/livez'}`
}

/** Every address is listened on; one of them is asked. */
const reachable = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }

if (import.meta.main) {
  const address = healthAddress(readFileSync('/proc/1/cmdline', 'utf8'), process.env)
  const answer = await fetch(address, { signal: AbortSignal.timeout(timeoutMs) }).catch(({ cause, message }) => ({
    ...{ ok: false, text: async () => `${address}: ${cause?.message ?? message}\n` },
  }))
  process.stdout.write(answer.ok ? '' : await answer.text())
  process.exitCode = answer.ok ? 0 : 1
}
