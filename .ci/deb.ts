import { execFileSync } from 'node:child_process'
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * `npm run deb` makes build/outboxd_VERSION_ARCHITECTURE.deb, for this machine's architecture: the package of build.ts
 * with a Node of its own. Needs Debian's dpkg-deb and strip. Two runs of one commit give the same bytes.
 */
const root = join(import.meta.dirname, '..')
const built = join(root, 'build', 'outboxd')
const tree = join(root, 'build', 'deb')
const at = (path: string) => join(tree, path)
const read = (path: string) => readFile(join(root, path), 'utf8')

const { version } = JSON.parse(await read('package.json')) as { version: string }
const architecture = process.arch === 'x64' ? 'amd64' : process.arch
// In a folder named bin, where SELinux lets systemd start programs (for the .rpm of the same files).
const program = '/usr/lib/outboxd/bin/outboxd'
const node = '/usr/lib/outboxd/bin/node'
const environmentFile = `# Variables of outboxd: /usr/share/doc/outboxd/docs/reference/variables.md
# Secrets go into files of their own beside this one: database_url, service_client_id, service_client_secret.
#SERVICE_BASE_URL=https://service.example
#SERVICE_AUTH_URL=https://auth.example
`

await rm(tree, { recursive: true, force: true })
for (const part of ['dist', 'migrations', 'assets', 'bin', 'package.json'])
  await place(join(built, part), `usr/lib/outboxd/${part}`)
// MAPPINGS_DIR names the folder in /etc; these are for `outboxd map` without one.
await place(join(built, 'mappings'), 'usr/lib/outboxd/mappings')
await place(process.execPath, node)
execFileSync('strip', [at(node)])
await write(program, `#!/bin/sh\nexec ${node} -- /usr/lib/outboxd/dist/main.js "$@"\n`, 0o755)
await write('usr/bin/outboxd', (await read('deploy/outboxd')).replace(/^program=.*/m, `program=${program}`), 0o755)
await write('usr/lib/systemd/system/outboxd.service', await unit())

await write('etc/outboxd/env', environmentFile)
await place(join(root, 'mappings'), 'etc/outboxd/mappings')

const completion = execFileSync(process.execPath, [join(built, 'dist', 'main.js'), 'completion', 'bash'])
await write('usr/share/bash-completion/completions/outboxd', completion)
for (const part of ['docs', 'deploy', 'README.md', 'CHANGELOG.md'])
  await place(join(built, part), `usr/share/doc/outboxd/${part}`)
await write(
  'usr/share/doc/outboxd/copyright',
  `${await read('LICENSE')}\n${'-'.repeat(80)}\n\nNode.js ${process.version}: https://github.com/nodejs/node/blob/${process.version}/LICENSE\n\nParts of other packages, and their licences:\n\n${await readFile(join(built, 'licenses.txt'), 'utf8')}`,
)

const folders = await readdir(tree, { recursive: true, withFileTypes: true })
const files = folders.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
const inEtc = files.filter((file) => file.startsWith(at('etc/'))).map((file) => file.slice(tree.length))
await write('DEBIAN/conffiles', `${inEtc.toSorted().join('\n')}\n`)
await write('DEBIAN/control', control())
for (const script of ['postinst', 'prerm', 'postrm'])
  await write(`DEBIAN/${script}`, await read(`deploy/deb/${script}`), 0o755)
for (const entry of folders) if (entry.isDirectory()) await chmod(join(entry.parentPath, entry.name), 0o755)

const time = execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }).trim()
const file = join(root, 'build', `outboxd_${version}_${architecture}.deb`)
execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', tree, file], {
  env: { ...process.env, SOURCE_DATE_EPOCH: time },
})
await rm(tree, { recursive: true })
process.stdout.write(`${file}\n`)

async function place(from: string, to: string): Promise<void> {
  await mkdir(dirname(at(to)), { recursive: true })
  await cp(from, at(to), { recursive: true })
}

async function write(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  await mkdir(dirname(at(path)), { recursive: true })
  await writeFile(at(path), content)
  await chmod(at(path), mode)
}

async function unit(): Promise<string> {
  const text = await read('deploy/outboxd.service')
  return text
    .replace('/opt/outboxd/bin/outboxd', program)
    .replace('/opt/outboxd/lib/node_modules/outboxd/docs', '/usr/share/doc/outboxd/docs')
}

function control(): string {
  const size = Math.ceil(
    Number(execFileSync('du', ['-sk', '--apparent-size', tree], { encoding: 'utf8' }).split('\t')[0]),
  )
  return `Package: outboxd
Version: ${version}
Architecture: ${architecture}
Maintainer: outboxd <outboxd@localhost>
Section: database
Priority: optional
Installed-Size: ${size}
Depends: libc6 (>= 2.28), libstdc++6 (>= 6), libatomic1, passwd, util-linux
Description: sends a Postgres outbox to a submit-then-poll HTTPS service
 Each record once, to the cent, inside the rate limit. The daemon reads an
 ERP's outbox table, maps and submits its records, and tracks them to their end.
 Configuration is in /etc/outboxd.
`
}
