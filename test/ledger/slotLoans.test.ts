import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { bindLedgerToServiceIfUnbound, ServiceMismatch } from '../../src/ledger/binding.ts'
import { borrowSlots, openCommandSlots } from '../../src/ledger/slotLoans.ts'
import { ask } from '../discover/ask.ts'
import { fitSlotsToBudget, type Ledger, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(async () => {
  await ledger.reset()
  await fitSlotsToBudget(ledger.pool, 2)
})

const service = { baseUrl: 'https://service.example', authUrl: 'https://auth.example', clientId: 'client' }
const borrow = () => borrowSlots(ledger.url, { permits: 1, requestsEndAfterMs: 1_000, service })
const openSlots = async () => {
  const options = { windowMs: 60_000, requestTimeoutMs: 1_000, stopwatch: systemClock.stopwatch }
  const slots = await openCommandSlots(ledger.url, options)
  if (slots === null) throw new Error('the ledger has no budget')
  return slots
}
const countFreeSlots = async () =>
  (await ledger.pool.query('select from outboxd.slot where free_at <= clock_timestamp()')).rowCount

test('a command takes a free slot of a ledger that has lost nothing', async () => {
  const loan = await borrow()
  expect(loan.kind).toBe('loan')
  await using slots = await openSlots()
  expect(await slots.take()).toMatchObject({ kind: 'slot' })
  expect(await countFreeSlots()).toBe(0)
  expect(await borrow()).toEqual({ kind: 'none-free' })
})

test('a command takes no slot while the ledger may have lost data', async () => {
  await ledger.pool.query('update outboxd.history set timeline = timeline + 1') // as after a promotion
  expect(await borrow()).toEqual({ kind: 'history-differs' })
  await using slots = await openSlots()
  expect(await slots.take()).toMatchObject({ kind: 'paused', reason: 'history' })
  await ledger.pool.query(
    `update outboxd.history set timeline = timeline - 1, found_at = now(), found = 'x', found_by = 'y'`,
  )
  expect(await borrow()).toEqual({ kind: 'history-differs' })
  expect(await countFreeSlots()).toBe(2)
})

test('a slot that a command takes is on disk before the request leaves, even with synchronous_commit = off', async () => {
  await ledger.pool.query(`
    create table taken (synchronous_commit text);
    create function note_taken() returns trigger language plpgsql as $$ begin
      insert into public.taken values (current_setting('synchronous_commit'));
      return null;
    end $$;
    create trigger note_taken after update on outboxd.slot for each row execute function note_taken();
    do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`)
  onTestFinished(async () => {
    await ledger.pool.query(`
      drop trigger note_taken on outboxd.slot; drop function note_taken; drop table taken;
      do $$ begin execute format('alter database %I reset synchronous_commit', current_database()); end $$`)
  })
  await borrow()
  await using slots = await openSlots()
  await slots.take()
  expect((await ledger.pool.query('select synchronous_commit as at from public.taken')).rows).toEqual([
    { at: 'local' },
    { at: 'local' },
  ])
})

test('discover takes no slots of a ledger that belongs to a different service', async () => {
  await bindLedgerToServiceIfUnbound(ledger.pool, service, 'daemon 1')
  const asked = ask('http://127.0.0.1:9', { only: 'token-unit', ledger: true }, { DATABASE_URL: ledger.url })
  await expect(asked).rejects.toThrow(ServiceMismatch)
})
