import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { command as capture } from '../../src/commands/capture.ts'
import { command as prune } from '../../src/commands/prune.ts'
import { command as recover } from '../../src/commands/recover.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as status } from '../../src/commands/status.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { readStandingPauses } from '../../src/ledger/pauses.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { explainError } from '../../src/operations/explainError.ts'
import { FilesDiffer } from '../../src/operations/ledgerFiles.ts'
import { digestFiles, readFileSettings } from '../../src/outbox/digestFiles.ts'
import { dataFile, failedE003, mappingFiles, openFixtureForFile, payloadOf } from '../commands/fixture.ts'
import { openConsole } from '../console/openConsole.ts'
import type { TestContext } from '../support/context.ts'
import { dropRole, grantRole } from '../support/grantRole.ts'
import { setSettings } from '../support/ledger.ts'
import { completeAgo } from '../support/retention.ts'
import { until } from '../support/until.ts'

/** Changes from a host whose files are not those of the daemons. */

const fixture = openFixtureForFile()

const daemonsDir = mappingFiles({ 'data.yaml': dataFile })
const otherDir = mappingFiles({ 'data.yaml': dataFile.replace('maxLength: 10,', 'maxLength: 9,') })
/** The same mapping, but the table is read in another way. */
const otherTableDir = mappingFiles({
  'data.yaml': dataFile,
  'outbox.yaml':
    'table: outbox\nid: id\ntype: { column: type }\npayload: { column: payload }\nstate: none\norder: id\n',
})

beforeEach(() => setSettings(fixture.ledger.pool, digestFiles('outbox', loadMappings(daemonsDir))))

const contextIn = (MAPPINGS_DIR: string) => fixture.context(null, { MAPPINGS_DIR })
const stateOf = async (id: string) => (await fixture.ledger.row(id)).state
const readPauses = async () => (await readStandingPauses(fixture.ledger.pool)).map(({ reason }) => reason)

test('the refusal says in what the files differ and what to do, and exits with 2', async () => {
  await fixture.end(failedE003)
  const refused = await Promise.resolve(replay.action(contextIn(otherDir), [], { yes: true })).catch((error) => error)
  expect(refused).toBeInstanceOf(FilesDiffer)
  const { message, exitCode } = explainError(refused)
  expect(exitCode).toBe(2)
  expect(message).toMatch(
    /^the files in .* or the role of DATABASE_URL are not those that the daemons use: mapping of data differs\. No further record is changed\. Run the command where a daemon runs/,
  )
})

describe('is refused, and changes nothing', () => {
  test('replay', async () => {
    const id = await fixture.end(failedE003)
    await expect(replay.action(contextIn(otherDir), [], { yes: true })).rejects.toThrow(FilesDiffer)
    expect(await stateOf(id)).toBe('failed')
    expect(await replay.action(contextIn(daemonsDir), [], { yes: true })).toBe(0)
    expect(await stateOf(id)).toBe('queued')
  })

  test('recover, which pauses all first, unless nothing was lost', async () => {
    const [id = ''] = await fixture.ledger.capture([{}])
    await expect(recover.action(contextIn(otherDir), { dryRun: true })).rejects.toThrow(FilesDiffer)
    expect(await readPauses()).toEqual([])
    const context = contextIn(otherDir)
    await expect(recover.action(context, { yes: true })).rejects.toThrow(FilesDiffer)
    expect(await readPauses()).toEqual(['history'])
    expect(context.messages()).toContain('All is paused, and stays so until you confirm')
    expect(await recover.action(contextIn(otherDir), { nothingLost: true, yes: true })).toBe(0)
    expect(await readPauses()).toEqual([])
    expect(await stateOf(id)).toBe('queued')
  })

  test('prune, if outbox.yaml differs', async () => {
    const [id = ''] = await fixture.ledger.capture([{}])
    await completeAgo(fixture.ledger.pool, 100)
    await expect(prune.action(contextIn(otherTableDir), {})).rejects.toThrow('outbox.yaml differs')
    expect(await stateOf(id)).toBe('completed')
    expect(await prune.action(contextIn(otherDir), {})).toBe(0)
  })

  test('capture, if outbox.yaml differs', async () => {
    await expect(capture.action(contextIn(otherTableDir), { yes: true })).rejects.toThrow('outbox.yaml differs')
    expect((await fixture.ledger.pool.query("select from outboxd.problem where kind = 'row_skipped'")).rowCount).toBe(0)
    expect(await capture.action(contextIn(daemonsDir), { yes: true })).toBe(3)
  })

  test('replay, if the daemons get other files while it asks', async () => {
    const id = await fixture.end(failedE003)
    await fixture.end(failedE003)
    const context = contextIn(daemonsDir)
    context.stdin.isTTY = true
    const replaying = Promise.resolve(replay.action(context, [], {})).catch((error: unknown) => error)
    await until(context.messages, (said) => said.includes('Replay 2 records?'))
    await setSettings(fixture.ledger.pool, digestFiles('outbox', loadMappings(otherDir)))
    context.stdin.end('y\n')
    expect(await replaying).toBeInstanceOf(FilesDiffer)
    expect(await stateOf(id)).toBe('failed')
  })

  test('replay, if the daemons get other files while it reads rows', async () => {
    const outboxId = await fixture.row(payloadOf())
    const id = await fixture.end(failedE003, { outboxId })
    const { pool } = fixture.ledger
    const erp = await pool.connect()
    onTestFinished(() => erp.release(true))
    await erp.query('begin; lock table outbox')
    const replaying = Promise.resolve(replay.action(contextIn(daemonsDir), [id], { refresh: true })).catch((e) => e)
    await until(
      () => pool.query(`select from pg_locks where relation = 'outbox'::regclass and not granted`),
      ({ rowCount }) => rowCount !== 0,
    )
    await setSettings(pool, digestFiles('outbox', loadMappings(otherDir)))
    await erp.query('rollback')
    expect(await replaying).toBeInstanceOf(FilesDiffer)
    expect(await stateOf(id)).toBe('failed')
  })

  test('a replay in the console', async () => {
    const id = await fixture.end(failedE003)
    await using served = await openConsole(contextIn(otherDir))
    const page = await served.post('/records/choose', { do: 'replay', id })
    expect(page).toMatchObject({ status: 409, text: expect.stringContaining('mapping of data differs') })
    expect(await stateOf(id)).toBe('failed')
  })
})

const filteredDir = mappingFiles({
  'data.yaml': dataFile,
  'outbox.yaml':
    'table: outbox\nid: id\ntype: type\npayload: payload\nstate: { status: status, new: new, completed: done }\nfilter: id > 5\n',
})

test('status says that it counts waiting rows otherwise than the daemons', async () => {
  const { pool } = fixture.ledger
  await writeHeartbeat(pool, { id: randomUUID(), version: '1', host: 'erp-1', settings: {} })
  const headline = async (dir: string) => {
    const context = contextIn(dir)
    await status.action(context, {})
    return context.printed().split('\n')[0]
  }
  expect(await headline(otherDir)).toBe('All is well: everything is sent.')
  expect(await headline(filteredDir)).toContain('waiting rows may be wrong')
})

describe('a role that finds other tables by the names in a query', () => {
  const queryDir = mappingFiles({ 'data.yaml': `${dataFile}source: select id, note from sale where id = any($1)\n` })
  const roleIn = (dir: string, path: string) => {
    const url = new URL(fixture.ledger.url)
    url.searchParams.set('options', `-c search_path=${path}`)
    return fixture.context(null, { MAPPINGS_DIR: dir, DATABASE_URL: url.href })
  }
  const asDaemon = async (dir: string) =>
    setSettings(fixture.ledger.pool, await readFileSettings(fixture.ledger.pool, 'outbox', loadMappings(dir)))
  const replayAs = (context: TestContext) => replay.action(context, [], { dryRun: true })

  beforeAll(() => fixture.ledger.pool.query('create schema archive'))
  beforeEach(() => fixture.end(failedE003))

  test('cannot replay', async () => {
    await asDaemon(queryDir)
    await expect(replayAs(roleIn(queryDir, 'archive,public'))).rejects.toThrow(
      'search_path of the role is archive, public, not public',
    )
    expect(await replayAs(roleIn(queryDir, 'public'))).toBeDefined()
    // No such schemas exist.
    expect(await replayAs(roleIn(queryDir, '"$user",elsewhere,public'))).toBeDefined()
    // A role with the name of the ledger’s schema finds that schema by "$user", and so the ledger’s table `request`.
    await expect(replayAs(roleIn(queryDir, 'outboxd,public'))).rejects.toThrow('is outboxd, public, not public')
  })

  test('can replay if the files contain no SQL', async () => {
    await asDaemon(daemonsDir)
    expect(await replayAs(roleIn(daemonsDir, 'archive,public'))).toBeDefined()
  })
})

test('a role from which policies hide rows of the outbox cannot recover or prune, unless it is the daemons’', async () => {
  const { pool, url } = fixture.ledger
  const role = `restricted_${randomUUID().slice(0, 8)}`
  const env = await grantRole({ env: { DATABASE_URL: url, MAPPINGS_DIR: daemonsDir }, pool }, role, {})
  await pool.query(
    `alter table outbox enable row level security; create policy own on outbox to ${role} using (id > 5)`,
  )
  onTestFinished(async () => {
    await pool.query('drop policy own on outbox; alter table outbox disable row level security')
    await dropRole(pool, role)
  })
  const asRole = () => fixture.context(null, env)
  await expect(recover.action(asRole(), { yes: true })).rejects.toThrow('row-level security of the outbox is not in')
  await expect(prune.action(asRole(), {})).rejects.toThrow('row-level security of the outbox is not in the ledger')
  await setSettings(pool, { 'row-level security of the outbox': `that of ${role}` })
  expect(await recover.action(asRole(), { yes: true })).toBe(0)
  await expect(recover.action(contextIn(daemonsDir), { yes: true })).rejects.toThrow('outbox is missing')
})

test('before the first daemon any files may be used', async () => {
  await fixture.ledger.reset()
  const [id = ''] = await fixture.ledger.capture([{ error: 'no mapping', body: null }])
  expect(await replay.action(contextIn(otherDir), [], { yes: true, dryRun: true })).toBeDefined()
  expect(await stateOf(id)).toBe('rejected')
})
