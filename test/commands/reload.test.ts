import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { command } from '../../src/commands/reload.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { type Fixture, openFixture } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(() => fixture.reset())

test('a daemon that dies before it answers has not reloaded: said, and exit code 1', async () => {
  const { pool } = fixture.ledger
  await writeHeartbeat(pool, { id: randomUUID(), version: '1', host: 'erp-1' })
  const context = fixture.context()
  const exitCode = command.action(context, {})
  const asked = async () => (await pool.query('select from outboxd.instance where reload_asked > 0')).rowCount
  await expect.poll(asked).toBe(1)
  await pool.query(`update outboxd.instance set beat_at = now() - interval '13 s'`)
  // Reads the answers at least once after the daemon's death: the first reading may have been before it.
  await expect.poll(() => Promise.race([exitCode, 'waits']), { timeout: 500 }).toBe('waits')
  context.abort()
  expect(await exitCode).toBe(1)
  expect(context.messages()).toContain('on erp-1 (1) has not answered')
})
