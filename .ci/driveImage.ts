import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { freePort } from '../test/support/freePort.ts'
import { createDatabaseOn, startPostgres } from '../test/support/postgres.ts'
import { until } from '../test/support/until.ts'

/**
 * Runs the image's containers as Docker would: with the image's entry point, environment and health check, as an
 * unprivileged user, with the command as PID 1, a read-only root, secrets as files, and this machine's network.
 * `.ci/image` calls it.
 *
 * Usage: node .ci/driveImage.ts ROOT IMAGE.json
 */
const [root = '', imageFile = ''] = process.argv.slice(2)

interface ImageConfig {
  User: string
  WorkingDir: string
  Env: string[]
  Entrypoint: string[]
  Cmd: string[]
  StopSignal: NodeJS.Signals
  Healthcheck: { Test: string[] }
  Labels: Record<string, string>
}

const image: ImageConfig = JSON.parse(readFileSync(imageFile, 'utf8')).Docker.config
const uid = 1000

interface Ended {
  exitCode: number | null
  stdout: string
  stderr: string
}

interface Container {
  /** Runs a command in the container, as `docker exec` does. */
  exec(...command: string[]): Promise<Ended>
  /** Stops the container, as `docker stop` does. */
  stop(): Promise<Ended>
  readonly ended: Promise<Ended>
}

async function endOf(child: ReturnType<typeof spawn>): Promise<Ended> {
  const [stdout, stderr, [exitCode]] = await Promise.all([
    child.stdout === null ? '' : text(child.stdout),
    child.stderr === null ? '' : text(child.stderr),
    once(child, 'exit'),
  ])
  return { exitCode, stdout, stderr }
}

const secrets = mkdtempSync(join(tmpdir(), 'outboxd-secrets-'))
/** Names the server of the database, as the engine does for the containers of one network. */
const hosts = join(secrets, 'hosts')
writeFileSync(hosts, '127.0.0.1 localhost database\n', { mode: 0o644 })

/** @param args the command, instead of the image's */
async function startContainer(args: readonly string[], env: Record<string, string>): Promise<Container> {
  const variables = { ...Object.fromEntries(image.Env.map((each) => each.split(/=(.*)/s))), ...env }
  const isolation = [
    ...['--ro-bind', root, '/', '--proc', '/proc', '--dev', '/dev', '--ro-bind', secrets, '/run/secrets'],
    ...['--ro-bind', hosts, '/etc/hosts'],
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--uid', `${uid}`, '--gid', `${uid}`],
    ...['--cap-drop', 'ALL', '--as-pid-1', '--die-with-parent', '--chdir', image.WorkingDir, '--clearenv'],
    ...Object.entries(variables).flatMap(([name, value]) => ['--setenv', name, value]),
  ]
  const child = spawn('bwrap', [...isolation, '--info-fd', '3', '--', ...image.Entrypoint, ...args], {
    ...{ uid, gid: uid, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  })
  const ended = endOf(child)
  const { 'child-pid': pid } = JSON.parse(await text(child.stdio[3] as NodeJS.ReadableStream))
  const enter = ['--target', `${pid}`, '--user', '--mount', '--pid', '--ipc', '--uts', '--wd']
  return {
    ended,
    exec: (...command) =>
      endOf(
        spawn('nsenter', [...enter, '--setuid', `${uid}`, '--setgid', `${uid}`, '--', ...command], {
          env: variables,
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      ),
    stop() {
      process.kill(pid, image.StopSignal)
      return ended
    },
  }
}

const say = (line: string) => void process.stdout.write(`image: ${line}\n`)

async function isHealthy(container: Container): Promise<boolean> {
  const [kind, ...command] = image.Healthcheck.Test
  assert.equal(kind, 'CMD')
  return (await container.exec(...command)).exitCode === 0
}

function giveSecrets(values: Record<string, string>): Record<string, string> {
  for (const [name, value] of Object.entries(values))
    writeFileSync(join(secrets, name.toLowerCase()), `${value}\n`, { mode: 0o644 })
  chownSync(secrets, uid, uid)
  return Object.fromEntries(Object.keys(values).map((name) => [`${name}_FILE`, `/run/secrets/${name.toLowerCase()}`]))
}

async function drive(databaseUrl: string): Promise<void> {
  isLabelled()
  const [httpPort, sandboxPort] = [await freePort(), await freePort()]
  const sandboxUrl = `http://127.0.0.1:${sandboxPort}`
  const credentials = { SERVICE_CLIENT_ID: 'sandbox', SERVICE_CLIENT_SECRET: 'sandbox-secret' }
  const files = giveSecrets({ DATABASE_URL: databaseUrl.replace('127.0.0.1', 'database'), ...credentials })
  const addresses = { SERVICE_BASE_URL: sandboxUrl, SERVICE_AUTH_URL: sandboxUrl }
  const env = { ...files, ...addresses, HTTP_PORT: `${httpPort}`, SANDBOX_PORT: `${sandboxPort}` }

  const begunMs = performance.now()
  const migrated = await (await startContainer(['migrate', '--outbox'], env)).ended
  assert.equal(migrated.exitCode, 0, migrated.stderr)
  say('migrate --outbox ends with 0, its secrets are files')

  const sandbox = await startContainer(['sandbox'], env)
  const daemon = await startContainer(image.Cmd, env)
  await until(() => isHealthy(sandbox), Boolean)
  await until(() => isHealthy(daemon), Boolean)
  say(`the health check fits ${image.Cmd} and sandbox`)

  await completesRecord(databaseUrl)
  say(`from the image to the first completed record in ${Math.round((performance.now() - begunMs) / 100) / 10} s`)
  await isConfined(daemon)
  await answersCommands(daemon)

  await endsInTime(sandbox, 'sandbox')
  assert.equal(await isHealthy(daemon), true)
  await endsInTime(daemon, 'the daemon')
}

function isLabelled(): void {
  const { name, version, license } = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8'))
  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' }).trim()
  const wanted = { title: name, version, licenses: license, source: 'https://git.example/outboxd', revision }
  for (const [label, value] of Object.entries(wanted))
    assert.equal(image.Labels[`org.opencontainers.image.${label}`], value, label)
  say('its labels name version, licence and commit')
}

async function isConfined(daemon: Container): Promise<void> {
  assert.equal(image.User, 'node')
  const user = await daemon.exec('node', '--print', 'JSON.stringify(os.userInfo())')
  assert.partialDeepStrictEqual(JSON.parse(user.stdout), { uid, username: image.User })
  const first = await daemon.exec('node', '--print', 'fs.readFileSync("/proc/1/cmdline", "utf8")')
  assert.deepEqual(first.stdout.split('\0').slice(0, -1), [...image.Entrypoint, ...image.Cmd])
  for (const folder of ['/app', '/tmp']) {
    const written = await daemon.exec('sh', '-c', `echo > ${folder}/x`)
    assert.match(written.stderr, /Read-only file system/)
  }
  say('it is PID 1, an unprivileged user, and can write nowhere')
}

async function completesRecord(databaseUrl: string): Promise<void> {
  const client = new pg.Client(databaseUrl)
  await client.connect()
  const payload = { customerId: 'C1', orderDate: '2026-11-20T10:00:00+01:00', amount: 12.5, field2: 'hello' }
  await client.query(`insert into outbox (type, payload) values ('data', $1)`, [payload])
  const stateOf = async () => (await client.query('select status from outbox')).rows[0].status
  await until(stateOf, (state) => state === 'completed')
  await client.end()
}

/** Runs an operator's commands with the daemon's own configuration. */
async function answersCommands(daemon: Container): Promise<void> {
  for (const command of [['status'], ['check'], ['show', 'outbox:1']]) {
    const { exitCode, stdout, stderr } = await daemon.exec('outboxd', ...command)
    assert.equal(exitCode, 0, `outboxd ${command.join(' ')}: ${stdout}${stderr}`)
    if (command[0] === 'status') assert.match(stdout, /^All is well/)
  }
  say('outboxd status, check and show work inside with its configuration')
}

const stopMaxMs = 10_000

async function endsInTime(container: Container, name: string): Promise<void> {
  const beganMs = performance.now()
  const { exitCode, stdout } = await container.stop()
  const tookMs = Math.round(performance.now() - beganMs)
  assert.equal(exitCode, 0, stdout)
  assert.ok(tookMs < stopMaxMs, `${name} took ${tookMs} ms to end`)
  say(`${name} ends with 0, ${tookMs} ms after ${image.StopSignal}`)
}

await using server = await startPostgres()
await drive(await createDatabaseOn(server.url, 'erp'))
rmSync(secrets, { recursive: true })
