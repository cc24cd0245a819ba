import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { loadMappings } from '../src/mapping/loadMappings.ts'
import { mapOutboxRecord } from '../src/mapping/mapRecord.ts'
import { temporaryFolder } from './deploy/files.ts'
import { createDatabase } from './support/database.ts'
import { freePort } from './support/freePort.ts'
import { checkout } from './support/program.ts'

const readme = readFileSync(join(checkout, 'README.md'), 'utf8')
const section = readme.slice(readme.indexOf('## A first record in five minutes'), readme.indexOf('## Commands'))
const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)

const hasTools = ['psql', 'curl'].every((name) => spawnSync(name, ['--version']).status === 0)

test.runIf(hasTools)(
  'README.md, "A first record in five minutes": pasted at once, it completes a record and leaves nothing behind',
  async () => {
    await using database = await createDatabase('template0')
    const [service, daemon] = [await freePort(), await freePort()]
    expect(blocks).toHaveLength(3)
    const script = blocks
      .join('\n')
      .replace(/DATABASE_URL=\S+/, `DATABASE_URL='${database.url}'`)
      .replaceAll('8080', String(service))
      .replaceAll('9464', String(daemon))
    const bash = spawn('bash', ['-c', script], {
      cwd: checkout,
      env: {
        PATH: process.env.PATH,
        TMPDIR: process.env.TMPDIR,
        SANDBOX_PORT: String(service),
        HTTP_PORT: String(daemon),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    onTestFinished(() => endGroup(bash.pid))
    const [stdout, stderr] = await Promise.all([text(bash.stdout), text(bash.stderr), once(bash, 'exit')])
    expect(stdout, stderr).toMatch(/1 \| completed \| \S+/)
    expect(stdout, stderr).toContain('DROP SCHEMA')
    const { rows } = await database.pool.query(
      `select nspname as left from pg_namespace where nspname !~ '^(pg_|information_schema$|public$)'
     union all select relname from pg_class where relnamespace = 'public'::regnamespace`,
    )
    expect(rows).toEqual([])
  },
)

test.runIf(hasTools)('with a wrong address, README.md’s second block ends after its first command', () => {
  const [, block = ''] = blocks
  const env = { PATH: process.env.PATH, DATABASE_URL: 'postgres://erp:erp@127.0.0.1:1/erp' }
  const { stdout, stderr } = spawnSync('bash', ['-c', `${block}\nls sandbox.log`], {
    cwd: checkout,
    env,
    encoding: 'utf8',
  })
  expect(stdout).toBe('')
  expect(stderr.match(/^outboxd: .*127\.0\.0\.1:1/gm)).toHaveLength(1)
  expect(stderr).toMatch(/sandbox\.log/)
})

test('README.md’s mapping file makes README.md’s request of README.md’s row', () => {
  const [row = '', request = ''] = [...readme.matchAll(/^```json\n(.*?)^```$/gms)].map(([, block = '']) => block.trim())
  const [, file = ''] = /^```yaml\n(.*?)^```$/ms.exec(readme) ?? []
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'data.yaml'), file)
  const record = { type: 'data', payload: row, unreadable: null }
  const mapped = mapOutboxRecord(loadMappings(folder), record, 'x')
  expect(mapped).toMatchObject({ kind: 'mapped', body: request })
})

/** Ends the sandbox and the daemon of a test that failed midway. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // it has ended
  }
}
