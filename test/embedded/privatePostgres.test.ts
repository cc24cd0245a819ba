import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, test, vi } from 'vitest'
import { startPrivatePostgres } from '../../src/embedded/privatePostgres.ts'

const newFolder = () => mkdtemp(join(tmpdir(), 'kept-'))

test('a temporary server listens only on its socket, and leaves nothing behind', async () => {
  const server = await startPrivatePostgres()
  const client = new pg.Client(server.url)
  await client.connect()
  const { rows } = await client.query(`select current_setting('listen_addresses') as addresses`)
  expect(rows).toEqual([{ addresses: '' }])
  await client.end()
  const folder = new URL(server.url).searchParams.get('host') as string
  expect(existsSync(folder)).toBe(true)
  await server.stop()
  expect(existsSync(folder)).toBe(false)
  expect(() => process.kill(server.pid, 0)).toThrow('ESRCH')
})

test.runIf(existsSync('/proc/self/environ'))('none of our secrets is in the environment of what we start', async () => {
  vi.stubEnv('SANDBOX_CONTROL_TOKEN', 'a-secret')
  vi.stubEnv('PGDATA', '/of/something/else')
  const server = await startPrivatePostgres()
  vi.unstubAllEnvs()
  const known =
    /^(PATH|HOME|TMPDIR|TZ|LANG|LANGUAGE|LC_[A-Z]+|LD_LIBRARY_PATH|PG_GRANDPARENT_PID|PGSYSCONFDIR|PGLOCALEDIR)$/
  for (const program of [`${server.pid}`, reaper()]) {
    const variables = readFileSync(`/proc/${program}/environ`, 'utf8').split('\0').filter(Boolean)
    expect(variables.map((variable) => variable.split('=')[0]).filter((name = '') => !known.test(name))).toEqual([])
  }
  await server.stop()
})

test('environment variables of another PostgreSQL do not change where a client of the URL connects', async () => {
  for (const [name, value] of Object.entries({ PGPORT: '9', PGHOST: 'erp', PGSSLMODE: 'require', PGUSER: 'erp' }))
    vi.stubEnv(name, value)
  const server = await startPrivatePostgres()
  const clients = [server.url, inject('postgresUrl')].map((url) => new pg.Client(url))
  await Promise.all(clients.map((client) => client.connect())).finally(() => vi.unstubAllEnvs())
  for (const client of clients) {
    expect((await client.query('select current_user as name')).rows).toEqual([{ name: 'postgres' }])
    await client.end()
  }
  await server.stop()
})

/** The id of the reaper's process, a child of ours. */
function reaper(): string | undefined {
  const children = readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8').trim().split(' '),
  )
  return children.find((pid) => pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('reaperProcess'))
}

test('data of a different PostgreSQL version are refused', async () => {
  const folder = await newFolder()
  await mkdir(join(folder, 'postgres'), { mode: 0o700 })
  await writeFile(join(folder, 'postgres', 'PG_VERSION'), '17\n')
  await expect(startPrivatePostgres(folder)).rejects.toThrow(/PostgreSQL did not start: /)
})

test('the error about a folder that cannot be made says why', async () => {
  const file = join(await newFolder(), 'file')
  await writeFile(file, '')
  await expect(startPrivatePostgres(join(file, 'data'))).rejects.toThrow(/ENOTDIR.*data/)
})
