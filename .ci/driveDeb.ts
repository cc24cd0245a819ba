import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import pg from 'pg'
import { freePort } from '../test/support/freePort.ts'
import { createDatabaseOn, startPostgres } from '../test/support/postgres.ts'
import { startProgram } from '../test/support/program.ts'
import { until } from '../test/support/until.ts'

/**
 * Installs the .deb in a clean Debian with systemd, as docs/start/install.md says ("On Debian or Ubuntu"), upgrades,
 * removes and purges it. Then does the same with the .rpm, and installs npm's package ("On a host, with systemd").
 * `.ci/deb` calls it.
 *
 * Usage: node .ci/driveDeb.ts ROOT FILE.deb FILE.rpm FILE.tgz, as root. ROOT has Node and npm in /usr/local.
 */
const [root = '', debFile = '', rpmFile = '', packageFile = ''] = process.argv.slice(2)
const onDebian = 'On Debian or Ubuntu'
const say = (line: string) => void process.stdout.write(`deb: ${line}\n`)

await using stack = new AsyncDisposableStack()
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

for (const file of [debFile, rpmFile, packageFile]) copyFileSync(file, join(root, 'srv', basename(file)))
const systemdPid = await boot()
await install()
await restarts()
await upgrades()
await servesTwoPartners()
await goes()
await installsRpm()
await installsWithNpm()

/** Boots the root on this machine's network. @returns the process id of its systemd */
async function boot(): Promise<number> {
  const flags = ['--register=no', '--keep-unit', '--machine=outboxd-test', '--boot', 'systemd.unit=basic.target']
  const nspawn = spawn('systemd-nspawn', [`--directory=${root}`, ...flags], { stdio: 'ignore' })
  const ended = new Promise((resolve) => nspawn.once('exit', resolve))
  const children = () =>
    spawnSync('pgrep', ['--parent', `${nspawn.pid}`], { encoding: 'utf8' }).stdout.match(/\d+/g) ?? []
  stack.defer(async () => {
    // Without nspawn its systemd would live on, with the daemon in it.
    for (const pid of children()) process.kill(Number(pid), 'SIGKILL')
    nspawn.kill('SIGKILL')
    await ended
  })
  // The first child makes the second, which is systemd, and ends.
  const bootedChild = () =>
    children().find((pid) => inside(Number(pid), 'systemctl', 'is-active', 'basic.target').stdout === 'active\n')
  return Number(await until(bootedChild, (pid) => pid !== undefined))
}

/** Runs a command in the root, as root. */
function inside(pid: number, ...command: string[]) {
  const enter = ['--target', `${pid}`, '--mount', '--pid', '--uts', '--ipc', '--cgroup', 'env', '-i']
  const environment = [
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'DEBIAN_FRONTEND=noninteractive',
  ]
  return spawnSync('nsenter', [...enter, ...environment, ...command], { encoding: 'utf8' })
}

/** Types a step of the page with this machine's addresses. @returns its output */
function type(step: string): string {
  const typed = step
    .replace('https://service.example', sandboxUrl)
    .replace('https://auth.example', `${sandboxUrl}\nHTTP_PORT=${httpPort}`)
    .replace(/postgres:\/\/\w+:PASSWORD@db\.example\/erp/, databaseUrl)
    .replace('CLIENT ID', 'sandbox')
    .replace('CLIENT SECRET', 'sandbox-secret')
  const { status, stdout, stderr } = inside(systemdPid, 'sh', '-euc', `cd /srv\n${typed}`)
  assert.equal(status, 0, `${typed}\n${stdout}${stderr}`)
  return stdout
}

async function install(): Promise<void> {
  const begunMs = performance.now()
  const [block = ''] = blocksOf(onDebian)
  type(block)
  await completes('first')
  const seconds = Math.round((performance.now() - begunMs) / 100) / 10
  say(`from the file to the first completed record in ${seconds} s, by the block of docs/start/install.md`)
  assert.match(type('outboxd status'), /^All is well/)
}

/** The shell blocks of a section of docs/start/install.md. */
function blocksOf(heading: string): string[] {
  const page = readFileSync(join(import.meta.dirname, '..', 'docs/start/install.md'), 'utf8')
  const [, section = ''] = page.split(`## ${heading}\n`)
  return [...(section.split('\n## ')[0] ?? '').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/** Of the page's block for Debian, what writes the configuration. */
function settings(): string {
  const [lines = ''] = /^cd \/etc\/outboxd$.*service_client_secret\)$/ms.exec(blocksOf(onDebian)[0] ?? '') ?? []
  return lines
}

/** Installs the .rpm, upgrades and removes it: its files and scripts, not its dependencies, which no Debian has. */
async function installsRpm(): Promise<void> {
  const begunMs = performance.now()
  const [, block = ''] = blocksOf(onDebian)
  const command = block.replace('dnf install -y', 'rpm --install --nodeps')
  assert.notEqual(command, block)
  type(command)
  type(settings())
  type('outboxd check; systemctl enable --now outboxd')
  await completes('with the .rpm')
  const seconds = Math.round((performance.now() - begunMs) / 100) / 10
  const former = shown('MainPID')
  type(`rpm --upgrade --nodeps --replacepkgs ${basename(rpmFile)}`)
  assert.notEqual(shown('MainPID'), former)
  await isReady()
  type('rpm --verify --nodeps --noconfig outboxd')
  type('rpm --erase outboxd')
  assert.equal(type('ls -d /usr/lib/outboxd /usr/bin/outboxd 2> /dev/null || true'), '')
  assert.equal(type('systemctl is-active outboxd || true'), 'inactive\n')
  type('rm /etc/outboxd/database_url')
  type('rm -r /etc/outboxd; userdel outboxd')
  say(`with the .rpm, from the file to a completed record in ${seconds} s`)
  say('an upgrade with the .rpm restarts the daemon; removed, it leaves only its configuration and its user')
}

async function installsWithNpm(): Promise<void> {
  const begunMs = performance.now()
  const [install = '', migrate = '', start = ''] = blocksOf('On a host, with systemd')
  type(install)
  type(settings())
  type(migrate)
  type(start.replaceAll('sudo ', ''))
  await completes('with npm')
  const seconds = Math.round((performance.now() - begunMs) / 100) / 10
  say(`with npm, from the file to a completed record in ${seconds} s, by the blocks of the page`)
  type('systemctl stop outboxd')
  assert.equal(shown('Result'), 'success')
}

async function completes(name: string, table = 'outbox'): Promise<void> {
  const payload = { customerId: 'C1', orderDate: '2026-11-20T10:00:00+01:00', amount: 12.5, field2: name }
  const { rows } = await client.query(`insert into ${table} (type, payload) values ('data', $1) returning id`, [
    payload,
  ])
  const stateOf = async () =>
    (await client.query(`select status from ${table} where id = $1`, [rows[0].id])).rows[0].status
  await until(stateOf, (state) => state === 'completed')
}

async function restarts(): Promise<void> {
  // Not after 30 s.
  type('mkdir /run/systemd/system/outboxd.service.d')
  type(
    'printf "[Service]\\nRestartSec=1\\n" > /run/systemd/system/outboxd.service.d/soon.conf; systemctl daemon-reload',
  )
  type('kill -9 $(systemctl show --property MainPID --value outboxd)')
  await until(
    () => shown('NRestarts'),
    (times) => times === '1',
  )
  await isReady()
  type('systemctl stop outboxd')
  assert.equal(shown('Result'), 'success')
  type("sed -i 's/^HTTP_PORT=.*/HTTP_PORT=nonsense/' /etc/outboxd/env; systemctl start outboxd")
  await until(
    () => shown('SubState'),
    (state) => state === 'auto-restart',
  )
  assert.equal(shown('ExecMainStatus'), '2')
  assert.match(type('journalctl --unit outboxd --output cat'), /HTTP_PORT must be a whole number/)
  type(`sed -i 's/^HTTP_PORT=.*/HTTP_PORT=${httpPort}/' /etc/outboxd/env; systemctl restart outboxd`)
  await isReady()
  say('killed, it is started again; told to stop it ends well; with a wrong configuration it says why')
}

async function upgrades(): Promise<void> {
  const former = shown('MainPID')
  type(`dpkg --install ${basename(debFile)}`)
  assert.notEqual(shown('MainPID'), former)
  await isReady()
  await completes('after an upgrade')
  assert.match(type('cat /etc/outboxd/env'), new RegExp(sandboxUrl))
  type(blocksOf(onDebian).at(-1) ?? '')
  say('an upgrade restarts the daemon and keeps its configuration')
}

async function servesTwoPartners(): Promise<void> {
  type(blocksOf('Several services or partners on one host').join('\n'))
  const port = await freePort()
  const its = `HTTP_PORT=${port}\nLEDGER_SCHEMA=partner2\nOUTBOX_TABLE=outbox2\n`
  type(
    `cd /etc; cp -r outboxd/* outboxd-partner2/; sed -i /HTTP_PORT/d outboxd-partner2/env; printf '${its}' >> outboxd-partner2/env`,
  )
  type(
    'outboxd-partner2 migrate --outbox; outboxd-partner2 check; systemctl daemon-reload && systemctl enable --now outboxd-partner2',
  )
  await completes('of a second partner', 'outbox2')
  type('systemctl disable --now outboxd-partner2')
  type('rm -r /etc/outboxd-partner2 /etc/systemd/system/outboxd-partner2.service /usr/local/bin/outboxd-partner2')
  say('a second installation beside it sends a record of its own table')
}

async function goes(): Promise<void> {
  type('apt-get remove -y outboxd')
  assert.equal(type('ls /etc/outboxd/database_url'), '/etc/outboxd/database_url\n')
  assert.equal(type('systemctl is-active outboxd || true'), 'inactive\n')
  type('apt-get purge -y outboxd')
  assert.equal(
    type('ls -d /etc/outboxd /usr/lib/outboxd /usr/bin/outboxd 2> /dev/null || true; id outboxd 2> /dev/null || true'),
    '',
  )
  say('removed, it leaves its configuration; purged, nothing')
}

function shown(property: string): string {
  return type(`systemctl show --property ${property} --value outboxd`).trim()
}

async function isReady(): Promise<void> {
  const answers = () =>
    fetch(`http://127.0.0.1:${httpPort}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(answers, Boolean)
}
