import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from '../test/support/freePort.ts'
import { createDatabaseOn, startPostgres } from '../test/support/postgres.ts'
import { startProgram } from '../test/support/program.ts'
import { until } from '../test/support/until.ts'

/**
 * Tests the unit under a real systemd: runs the steps of docs/start/install.md, "On a host, with systemd", in a
 * container of this machine's files, below a temporary layer. Run by hand, as root, with Debian's systemd-container;
 * takes a minute.
 *
 * Usage: node .ci/systemd.ts
 */
const checkout = join(import.meta.dirname, '..')
const say = (line: string) => void process.stdout.write(`systemd: ${line}\n`)

await using stack = new AsyncDisposableStack()
const folder = mkdtempSync(join(tmpdir(), 'outboxd-systemd-'))
stack.defer(() => rmSync(folder, { recursive: true }))
const server = stack.use(await startPostgres())
const databaseUrl = await createDatabaseOn(server.url, 'erp')
const sandbox = stack.use(
  startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    env: { SANDBOX_DATABASE_URL: databaseUrl, SANDBOX_PROCESSING_TIME: 'constant:0.1' },
  }),
)
const sandboxUrl: string = JSON.parse(await sandbox.line((line) => line.startsWith('{'))).url
const httpPort = await freePort()
const client = new pg.Client(databaseUrl)
await client.connect()
stack.defer(() => client.end())

const root = layOver(folder)
run('npm', ['pack', '--silent', '--pack-destination', join(root, 'srv')])
// For all users of the container, because this machine's `node` may be older.
copyFileSync(join(checkout, 'node_modules/node/bin/node'), join(root, 'usr/local/bin/node'))
chmodSync(join(root, 'usr/local/bin/node'), 0o755)
writeFileSync(join(root, 'etc/machine-id'), `${'0123456789abcdef'.repeat(2)}\n`)
const systemdPid = await boot(root)
await drive()

/** Mounts this machine's files with a layer in memory above them. */
function layOver(at: string): string {
  run('mount', ['-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', at])
  stack.defer(() => void run('umount', [at]))
  const [upper, work, merged] = ['upper', 'work', 'root'].map((name) => join(at, name)) as [string, string, string]
  for (const each of [upper, work, merged]) mkdirSync(each)
  run('mount', ['-t', 'overlay', '-o', `lowerdir=/,upperdir=${upper},workdir=${work}`, 'overlay', merged])
  stack.defer(() => void run('umount', [merged]))
  return merged
}

/**
 * Boots the container without this machine's services, on this machine's network.
 *
 * @returns the process id of its systemd
 */
async function boot(directory: string): Promise<number> {
  const flags = ['--register=no', '--keep-unit', '--machine=outboxd-test', '--boot', 'systemd.unit=basic.target']
  const nspawn = spawn('systemd-nspawn', [`--directory=${directory}`, ...flags], { stdio: 'ignore' })
  const ended = new Promise((resolve) => nspawn.once('exit', resolve))
  stack.defer(async () => {
    nspawn.kill('SIGKILL')
    await ended
  })
  const childOf = () => Number(spawnSync('pgrep', ['--parent', `${nspawn.pid}`], { encoding: 'utf8' }).stdout)
  const pid = await until(childOf, (child) => child > 0)
  const isUp = () => inside(pid, 'systemctl', 'is-active', 'basic.target').stdout
  await until(isUp, (said) => said === 'active\n')
  return pid
}

/** Runs a command in the container, as root. */
function inside(pid: number, ...command: string[]) {
  const enter = ['--target', `${pid}`, '--mount', '--pid', '--uts', '--ipc', '--cgroup', 'env', '-i']
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  const registry = 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' // how this machine reaches the registry
  return spawnSync('nsenter', [...enter, path, registry, ...command], { encoding: 'utf8' })
}

function run(command: string, args: string[]): string {
  return execFileSync(command, args, { cwd: checkout, encoding: 'utf8' })
}

/** Runs a step of the page with this machine's addresses, without sudo, because we are root already. */
function type(step: string): string {
  const typed = step
    .replaceAll('sudo ', '')
    .replace('https://service.example', sandboxUrl)
    .replace('https://auth.example', `${sandboxUrl}\nHTTP_PORT=${httpPort}`)
    .replace(/postgres:\/\/\w+:PASSWORD@db\.example\/erp/, databaseUrl)
    .replace('CLIENT ID', 'sandbox')
    .replace('CLIENT SECRET', 'sandbox-secret')
    .replace('/env migrate ', '/env migrate --outbox ')
  const { status, stdout, stderr } = inside(systemdPid, 'sh', '-euc', `cd /srv\n${typed}`)
  assert.equal(status, 0, `${typed}\n${stdout}${stderr}`)
  return stdout
}

async function drive(): Promise<void> {
  const page = readFileSync(join(checkout, 'docs/start/install.md'), 'utf8')
  const [, section = ''] = page.split('## On a host, with systemd\n')
  const steps = [...(section.split('\n## ')[0] ?? '').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, step = '']) => step)
  for (const step of steps) type(step)
  await runs()
  say(`the ${steps.length} blocks of docs/start/install.md, typed one after the other, end in a unit that runs`)

  const payload = { customerId: 'C1', orderDate: '2026-11-20T10:00:00+01:00', amount: 12.5, field2: 'hello' }
  await client.query(`insert into outbox (type, payload) values ('data', $1)`, [payload])
  const stateOf = async () => (await client.query('select status from outbox')).rows[0].status
  await until(stateOf, (state) => state === 'completed')
  assert.match(type('outboxd status'), /^All is well/)
  say('a record is completed, and `outboxd status` says that all is well')

  type('systemctl reload outboxd')
  await until(logged, (log) => log.includes('read the mapping files again'))
  type("echo 'type: [' > /etc/outboxd/mappings/broken.yaml; systemctl reload outboxd")
  await until(
    () => type('journalctl --unit outboxd --priority err --output cat'),
    (log) => log.includes('are broken'),
  )
  type('rm /etc/outboxd/mappings/broken.yaml')
  say('reload reads the mapping files again; broken ones are an error in the journal, by its priority')

  type('kill -9 $(systemctl show --property MainPID --value outboxd)')
  await until(
    () => shown('NRestarts'),
    (times) => times === '1',
  )
  await runs()
  say('killed, it is started again')

  type('systemctl stop outboxd')
  assert.equal(shown('Result'), 'success')
  type("sed -i 's/^HTTP_PORT=.*/HTTP_PORT=nonsense/' /etc/outboxd/env; systemctl start outboxd")
  await until(
    () => shown('SubState'),
    (state) => state === 'auto-restart',
  )
  assert.equal(shown('ExecMainStatus'), '2')
  assert.match(logged(), /HTTP_PORT must be a whole number/)
  type(`sed -i 's/^HTTP_PORT=.*/HTTP_PORT=${httpPort}/' /etc/outboxd/env`)
  await runs()
  say('told to stop it ends well; with a configuration that cannot work it says why, and is started again')
}

function shown(property: string): string {
  return type(`systemctl show --property ${property} --value outboxd`).trim()
}

function logged(): string {
  return type('journalctl --unit outboxd --output cat')
}

async function runs(): Promise<void> {
  const isReady = () =>
    fetch(`http://127.0.0.1:${httpPort}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(isReady, Boolean)
}
