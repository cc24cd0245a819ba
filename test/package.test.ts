import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'

/** The files between `npm install` and the program. .ci/package tests the installed package itself. */

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

describe('the launcher', () => {
  /** Runs the launcher with a process that claims this version of Node. */
  function launch(version: string) {
    const seen = { required: [] as string[], stderr: '', exitCode: null as number | null }
    const require = (path: string): unknown => {
      seen.required.push(path)
      if (path === './nodeRefusal.cjs') return run(path)
      return path.endsWith('.json') ? JSON.parse(read('package.json')) : undefined
    }
    const process = {
      versions: { node: version },
      execPath: '/usr/bin/node',
      stderr: { write: (text: string) => (seen.stderr += text) },
      exit: (code: number) => (seen.exitCode = code),
    }
    const run = (path: string) => {
      const module = { exports: undefined }
      runInNewContext(read(join('bin', path)).replace(/^#!.*/, ''), { require, process, module })
      return module.exports
    }
    run('outboxd.cjs')
    return seen
  }

  test.each([
    '0.12.18',
    '4.9.1',
    '20.20.2',
    '24.15.0',
    '25.9.0',
  ])('names the version it needs on Node %s, and exits with 2', (version) => {
    const { required, stderr, exitCode } = launch(version)
    expect(stderr).toContain(`needs Node 24.16 or Node 26 or newer, and this is Node ${version} (/usr/bin/node)`)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect({ required, exitCode }).toEqual({ required: ['./nodeRefusal.cjs'], exitCode: 2 })
  })

  test.each(['24.16.0', '24.21.0', '26.0.0', '27.1.0', '100.0.0'])('starts the program on Node %s', (version) => {
    expect(launch(version)).toEqual({
      required: ['./nodeRefusal.cjs', './start.cjs'],
      stderr: '',
      exitCode: null,
    })
  })

  test('--env-file with a missing file is answered by outboxd, not by Node', () => {
    const folder = mkdtempSync(join(tmpdir(), 'launcher-'))
    cpSync(join(root, 'bin'), join(folder, 'bin'), { recursive: true })
    mkdirSync(join(folder, 'dist'))
    writeFileSync(join(folder, 'dist', 'main.js'), `await import(${JSON.stringify(join(root, 'src', 'main.ts'))})`)
    const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}` }
    const options = { cwd: folder, env, encoding: 'utf8' } as const
    const { status, stderr } = spawnSync(join(folder, 'bin', 'outboxd.cjs'), ['--env-file', 'nix', 'status'], options)
    expect(stderr).toContain(`--env-file: there is no file ${join(folder, 'nix')}`)
    expect(status).toBe(2)
  })

  test.each(['outboxd.cjs', 'nodeRefusal.cjs'])('%s uses no syntax that is newer than the first Node', (file) => {
    const code = read(`bin/${file}`).replaceAll(/^(#!|\/\/).*$/gm, '')
    expect(code).not.toMatch(/\b(const|let|import|async|await|class)\b|=>|`|\?\.|\?\?|,\s*\)/)
  })
})

describe.runIf(process.getuid?.() === 0)('deploy/outboxd, for root', () => {
  function install(name = 'outboxd') {
    const folder = mkdtempSync(join(tmpdir(), 'host-'))
    chmodSync(folder, 0o711)
    const etc = join(folder, 'etc')
    mkdirSync(etc)
    writeFileSync(join(etc, 'database_url'), 'postgres://erp:pw@db/erp\n', { mode: 0o600 })
    const program = join(folder, 'program')
    writeFileSync(program, '#!/bin/sh\necho "$(id -un): $*; $DATABASE_URL; ${SERVICE_CLIENT_ID-unset}"\n', {
      mode: 0o755,
    })
    const wrapper = join(folder, name)
    const text = read('deploy/outboxd')
      .replace(/^program=.*/m, `program=${program}`)
      .replace(/^etc=.*/m, `etc=${etc}`)
      .replace(/^user=.*/m, 'user=nobody')
    writeFileSync(wrapper, text, { mode: 0o755 })
    return { wrapper, program, etc }
  }

  test('runs the command as the daemon’s user with its configuration, and no other user can read the secrets', () => {
    const { wrapper, etc } = install()
    const said = execFileSync(wrapper, ['show', 'outbox:1'], { encoding: 'utf8', env: { PATH: process.env.PATH } })
    expect(said).toBe(`nobody: --env-file ${etc}/env show outbox:1; postgres://erp:pw@db/erp; unset\n`)
  })

  test('gives the command the client certificate’s key, which only root may read', () => {
    const { wrapper, program, etc } = install()
    const key = join(etc, 'service_key.pem')
    writeFileSync(key, 'the key\n', { mode: 0o600 })
    writeFileSync(join(etc, 'env'), 'SERVICE_CERT_FILE=service_cert.pem\n')
    writeFileSync(
      program,
      '#!/bin/sh\ncat "$SERVICE_KEY_FILE" "$SERVICE_KEY_FILE"; stat -L -c "%a %U" "$SERVICE_KEY_FILE"\n',
    )
    expect(execFileSync(wrapper, ['check'], { encoding: 'utf8' })).toBe('the key\nthe key\n600 nobody\n')
    expect(readdirSync('/run').filter((name) => name.startsWith('outboxd.'))).toEqual([])
  })

  test.each([
    ['no certificate', '#SERVICE_CERT_FILE=service_cert.pem\n'],
    ['a key of its own', 'SERVICE_CERT_FILE=cert.pem\nSERVICE_KEY_FILE=key.pem\n'],
  ])('if env has %s, does not pass the key’s file on, as the daemon does not', (_, env) => {
    const { wrapper, program, etc } = install()
    writeFileSync(join(etc, 'service_key.pem'), 'the key\n', { mode: 0o600 })
    writeFileSync(join(etc, 'env'), env)
    writeFileSync(program, '#!/bin/sh\necho "${SERVICE_KEY_FILE-unset}"\n')
    expect(execFileSync(wrapper, ['check'], { encoding: 'utf8' })).toBe('unset\n')
  })

  test.each([
    'outboxd',
    'outboxd-partner2',
  ])('without sudo, %s names the command that can read its configuration', (name) => {
    const { wrapper, program } = install(name)
    writeFileSync(program, '#!/bin/sh\nexit 2\n')
    const { status, stderr } = spawnSync(wrapper, ['status'], { encoding: 'utf8', uid: 65534, gid: 65534 })
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(`sudo ${name} `) })
  })
})

const canVerify = spawnSync('systemd-analyze', ['--version']).status === 0

test('all versions in our pages and manifests equal that of package.json', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  const files = [
    'docs/start/install.md',
    'deploy/kubernetes/deployment.yaml',
    'deploy/kubernetes/migrate.yaml',
    'Dockerfile',
  ]
  const texts = files.map(read)
  const named = texts.flatMap((text) =>
    [...text.matchAll(/(?:outboxd[:-]|image\.version=)(\d+\.\d+\.\d+)/g)].map(([, each]) => each),
  )
  expect(named.length).toBeGreaterThan(5)
  expect(new Set(named)).toEqual(new Set([version]))
})

describe('deploy/outboxd.service', () => {
  test.runIf(canVerify)('is a valid unit for systemd', () => {
    const folder = mkdtempSync(join(tmpdir(), 'unit-'))
    const unit = join(folder, 'outboxd.service')
    const text = read('deploy/outboxd.service')
    writeFileSync(
      unit,
      text.replace('/opt/outboxd/bin/outboxd', '/bin/true').replace(/^(User|Group|Documentation)=.*\n/gm, ''),
    )
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
    expect({ status, stderr: stderr.split('\n').filter((line) => line.includes('outboxd')) }).toEqual({
      status: 0,
      stderr: [],
    })
  })

  test.runIf(canVerify)('lets its process do little but read its files and talk to its network', () => {
    const unit = join(root, 'deploy/outboxd.service')
    // Of 10 (a service without any limit). What is left is the network, mostly, and V8's compiler.
    const flags = ['security', '--offline=true', '--no-pager', '--threshold=12', unit]
    const { status, stdout } = spawnSync('systemd-analyze', flags, { encoding: 'utf8' })
    expect(stdout).toMatch(/Overall exposure level for outboxd\.service: 1\.\d OK/)
    expect(status).toBe(0)
  })

  test('reads the files itself without LoadCredential, as docs/start/install.md changes it for an old systemd', () => {
    const folder = mkdtempSync(join(tmpdir(), 'unit-'))
    const unit = join(folder, 'outboxd.service')
    writeFileSync(unit, read('deploy/outboxd.service'))
    const [command = ''] = /^sed -i -e '\/Credential=.*$/m.exec(read('docs/start/install.md')) ?? []
    execFileSync('sh', ['-euc', command.replace('/etc/systemd/system/outboxd.service', unit)])
    const changed = readFileSync(unit, 'utf8')
    expect(changed).not.toMatch(/\/credentials|Credential=/)
    expect(changed.match(/^Environment=.*_FILE=.*$/gm)).toEqual(
      ['database_url', 'service_client_id', 'service_client_secret'].map(
        (name) => `Environment=${name.toUpperCase()}_FILE=/etc/outboxd/${name}`,
      ),
    )
  })

  test('restarts the daemon whatever its exit code, because a table may be missing for a minute', () => {
    const unit = read('deploy/outboxd.service')
    expect(unit).toMatch(/^Restart=always$/m)
    expect(unit).toMatch(/^RestartSec=30$/m)
    expect(unit).toMatch(/^StartLimitIntervalSec=0$/m)
    expect(unit).not.toMatch(/^RestartPreventExitStatus=/m)
  })

  test('has the folder and the names of docs/start/install.md', () => {
    const unit = read('deploy/outboxd.service')
    const page = read('docs/start/install.md')
    expect(page).toContain('--prefix /opt/outboxd ')
    expect(unit).toContain('ExecStart=/opt/outboxd/bin/outboxd --env-file /etc/outboxd/env run')
    for (const secret of ['database_url', 'service_client_id', 'service_client_secret'])
      expect(unit).toContain(`LoadCredential=${secret}:/etc/outboxd/${secret}\n`)
  })
})
