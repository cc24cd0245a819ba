import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePort } from './freePort.ts'
import { until } from './until.ts'

/** True if the program exists. .ci/run installs Debian's `prometheus` and `prometheus-alertmanager`. */
export const has = (program: string) => spawnSync(program, ['--version']).error === undefined

/** A monitoring server with its own configuration and folder. */
export interface MonitoringServer extends AsyncDisposable {
  /** http://host:port */
  readonly url: string
}

/**
 * Starts Prometheus.
 *
 * @param config contents of prometheus.yml
 * @param files more files in the same folder, by name, such as rules
 */
export function startPrometheus(config: object, files: Record<string, string> = {}): Promise<MonitoringServer> {
  return startServer('prometheus', config, files, '--storage.tsdb.path', [])
}

/** Starts an Alertmanager without a cluster. */
export function startAlertmanager(config: object): Promise<MonitoringServer> {
  return startServer('prometheus-alertmanager', config, {}, '--storage.path', ['--cluster.listen-address='])
}

const living = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

async function startServer(
  program: string,
  config: object,
  files: Record<string, string>,
  storage: string,
  more: readonly string[],
): Promise<MonitoringServer> {
  const folder = mkdtempSync(join(tmpdir(), `${program}-`))
  const configFile = join(folder, 'config.yml')
  writeFileSync(configFile, stringify(config))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const address = `127.0.0.1:${await freePort()}`
  const flags = [`--config.file=${configFile}`, `${storage}=${join(folder, 'data')}`, `--web.listen-address=${address}`]
  const child = spawn(program, [...flags, ...more], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  living.add(child)
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4_000)
  })
  const ended = once(child, 'exit').finally(() => living.delete(child))
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  const look = async () => (child.exitCode === null ? isReady(`http://${address}`) : 'ended')
  const seen = await until(look, (state) => state !== 'starting')
  if (seen === 'ready') return { url: `http://${address}`, [Symbol.asyncDispose]: stop }
  await stop()
  throw new Error(`${program} did not start: ${log}`)
}

async function isReady(url: string): Promise<'ready' | 'starting'> {
  const answer = await fetch(`${url}/-/ready`).catch(() => null)
  return answer?.ok ? 'ready' : 'starting'
}
