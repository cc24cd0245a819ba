import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { setup, submission } from '../../sandbox/setup.ts'
import { checkout, sourceMain } from '../../support/program.ts'

/** Runs the examples of docs/start/sandbox.md, "In your own CI". .ci/package runs them on the package. */

const run = promisify(execFile)
const page = await readFile(join(checkout, 'docs', 'start', 'sandbox.md'), 'utf8')
const exampleIn = (language: string) => page.split(`\`\`\`${language}\n`)[1]?.split('```\n', 1)[0] ?? ''

test.concurrent('the shell script runs to its end and prints the OrderCreated event', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'shell-'))
  await writeFile(join(folder, 'npx'), `#!/bin/sh\nshift 2\nexec "${process.execPath}" "${sourceMain}" "$@"\n`)
  await chmod(join(folder, 'npx'), 0o755)
  await writeFile(join(folder, 'sandbox.json'), '{"url":"http://127.0.0.1:1"}\n') // left by an earlier run
  const env = { ...process.env, PATH: `${folder}:${dirname(process.execPath)}:${process.env.PATH}` }
  const { stdout } = await run('sh', ['-c', exampleIn('sh')], { cwd: folder, env })
  expect(stdout).toContain('{"status":"ok"}')
  expect(stdout).toContain('OrderCreated')
})

test('the three curl commands list requests and transactions, and change a setting', async () => {
  await using s = await setup()
  await s.call('POST', '/api/v1/data', submission())
  const { transactionId } = (await s.call('POST', '/api/v1/data', submission())).json
  const [, , block = ''] = page.split('```sh\n')
  const commands = (block.split('```\n', 1)[0] ?? '').replaceAll('localhost:8080', new URL(s.sandbox.url).host)
  expect(commands.match(/^curl/gm)).toHaveLength(3)
  const answers = await Promise.all(
    commands
      .trim()
      .split('\n')
      .map((command) => run('sh', ['-c', command])),
  )
  const [ledger, transactions, settings] = answers.map(({ stdout }) => JSON.parse(stdout))
  expect(ledger.rows.map(({ status }: { status: number }) => status)).toEqual([200, 200, 200])
  expect(transactions.rows[1].transactionId).toBe(transactionId)
  expect(settings).toMatchObject({ processingTime: 'constant:30', changed: ['processingTime'] })
  expect((await s.control('GET', '/ledger?last=1')).rows).toMatchObject([{ sequence: 3 }])
  expect((await s.control('GET', '/ledger?last=1&endpoint=token')).rows).toMatchObject([{ sequence: 1 }])
})

test.concurrent('the vitest file passes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vitest-'))
  await symlink(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'outbox.test.js'), exampleIn('js'))
  await copyFile(join(import.meta.dirname, 'exampleProgram.js'), join(folder, 'program.js'))
  const alias = { 'outboxd/sandbox': join(checkout, 'src', 'sandbox', 'sandbox.ts') }
  // The same timeouts as our own tests, because other tests run beside it.
  const config = { test: { alias, hookTimeout: 120_000, testTimeout: 120_000 } }
  await writeFile(join(folder, 'vitest.config.js'), `export default ${JSON.stringify(config)}\n`)
  const { VITEST: _, ...inherited } = process.env
  const vitest = join(checkout, 'node_modules', 'vitest', 'vitest.mjs')
  const { stdout } = await run(process.execPath, [vitest, 'run'], { cwd: folder, env: { ...inherited, NO_COLOR: '1' } })
  expect(stdout).toMatch(/Tests +1 passed/)
})
