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
  const words = command.split('\0')
  if (!words.includes('sandbox')) return address(env.HTTP_HOST, env.HTTP_PORT || '9464', '/livez')
  const host = option(words, '--host') || env.SANDBOX_HOST
  return address(host, option(words, '--port') || env.SANDBOX_PORT || '8080', '/_sandbox/health')
}

/** Of an option's two forms, `--port 80` and `--port=80`. */
function option(words, name) {
  const at = words.indexOf(name)
  return at === -1 ? words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) : words[at + 1]
}

function address(given, port, path) {
  const host = given || '127.0.0.1'
  return `http://${reachable[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}${path}`
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
