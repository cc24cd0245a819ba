import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { bindLedgerToServiceIfUnbound, ServiceMismatch } from '../../src/ledger/binding.ts'
import { CommandRequests } from '../../src/ledger/commandRequests.ts'
import { ask } from '../discover/ask.ts'
import { countFree, openLedgerForFile, setLimit } from '../support/ledger.ts'

const ledger = openLedgerForFile()
beforeEach(() => setLimit(ledger.pool, 2))

const service = { baseUrl: 'https://service.example', authUrl: 'https://auth.example', clientId: 'client' }
const open = () => new CommandRequests(ledger.url, { name: 'outboxd test', requestTimeoutMs: 1_000 })
const free = () => countFree(ledger.pool)

test('a command claims a free request of a ledger that has lost nothing', async () => {
  await using requests = open()
  expect(await requests.claim()).toMatchObject({ kind: 'request' })
  expect(await requests.tryClaim(service)).toMatchObject({ kind: 'request' })
  expect(await free()).toBe(0)
  expect(await requests.claim()).toEqual({ kind: 'none-free' })
})

test('a command that waits gets the next free request before the daemons, and claims no more than the limit', async () => {
  await using daemon = open()
  const [first] = [await daemon.claim(), await daemon.claim()]
  await using command = open()
  for (let n = 0; n < 2; n++) expect(await command.claim('keep-place')).toEqual({ kind: 'none-free' })
  if (first.kind !== 'request') throw new Error('none was free')
  await first.end('unsent')
  expect(await free()).toBe(0)
  expect(await daemon.claim()).toEqual({ kind: 'none-free' })
  expect(await command.claim('keep-place')).toMatchObject({ kind: 'request' })
  expect(await command.claim('keep-place')).toEqual({ kind: 'none-free' })
})

test('a command that gives up, or is killed, keeps no request from the daemons', async () => {
  await using daemon = open()
  const [first] = [await daemon.claim(), await daemon.claim()]
  if (first.kind !== 'request') throw new Error('none was free')
  await using killed = open()
  await killed.claim('keep-place')
  {
    await using command = open()
    await command.claim('keep-place')
    await first.end('unsent')
  }
  expect(await free()).toBe(0)
  await ledger.pool.query(`update outboxd.request set over_at = over_at - interval '5 s' where over_at < now()`)
  expect(await free()).toBe(1)
})

test('a request beyond the limit counts, too', async () => {
  await using requests = open()
  for (let n = 0; n < 3; n++) expect(await requests.claim('exceed')).toMatchObject({ kind: 'request' })
  expect((await ledger.pool.query('select from outboxd.request')).rowCount).toBe(3)
})

test.each([
  ['answered', 1, 1],
  ['unanswered', 1, 0],
  ['unsent', 2, 1],
] as const)('a request that was %s leaves %d free, and %d is over', async (how, left, over) => {
  await using requests = open()
  const claimed = await requests.claim()
  if (claimed.kind !== 'request') throw new Error('none was free')
  expect(claimed.mayLeave()).toBe(true)
  await claimed.end(how)
  expect(await free()).toBe(left)
  expect((await ledger.pool.query('select from outboxd.request where over_at < clock_timestamp()')).rowCount).toBe(over)
})

test('without a limit a command counts nothing', async () => {
  await ledger.reset()
  await using requests = open()
  expect(await requests.tryClaim(service)).toEqual({ kind: 'no-limit' })
})

test('a command claims no request while the ledger may have lost data', async () => {
  await using requests = open()
  await ledger.pool.query(`update outboxd.ledger set timeline = 'earlier'`) // as after a promotion
  expect(await requests.claim('exceed')).toEqual({ kind: 'history-differs' })
  await ledger.pool.query(`update outboxd.ledger set timeline = null, lost_at = now()`)
  expect(await requests.tryClaim(service)).toEqual({ kind: 'history-differs' })
  expect(await free()).toBe(2)
})

test('a request of a command is on disk before it leaves, even with synchronous_commit = off', async () => {
  await ledger.pool.query(`
    create table claimed (synchronous_commit text);
    create function note_claimed() returns trigger language plpgsql as $$ begin
      insert into public.claimed values (current_setting('synchronous_commit'));
      return null;
    end $$;
    create trigger note_claimed after insert on outboxd.request for each row execute function note_claimed();
    do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`)
  onTestFinished(async () => {
    await ledger.pool.query(`
      drop trigger note_claimed on outboxd.request; drop function note_claimed; drop table claimed;
      do $$ begin execute format('alter database %I reset synchronous_commit', current_database()); end $$`)
  })
  await using requests = open()
  await requests.claim()
  expect((await ledger.pool.query('select synchronous_commit as at from public.claimed')).rows).toEqual([
    { at: 'local' },
  ])
})

test('discover makes no request within the budget of a ledger that belongs to a different service', async () => {
  await bindLedgerToServiceIfUnbound(ledger.pool, service, 'daemon 1')
  const asked = ask('http://127.0.0.1:9', { only: 'token-unit', ledger: true }, { DATABASE_URL: ledger.url })
  await expect(asked).rejects.toThrow(ServiceMismatch)
})
