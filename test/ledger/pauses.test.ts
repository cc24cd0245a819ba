import { beforeEach, expect, test } from 'vitest'
import { readStandingPauses } from '../../src/ledger/pauses.ts'
import { openBreaker } from '../support/breaker.ts'
import { claim, claimTrial, openLedgerForFile, setLimit } from '../support/ledger.ts'

const ledger = openLedgerForFile()
beforeEach(async () => {
  await setLimit(ledger.pool)
  await ledger.capture([{}])
})

const reasons = async () => (await readStandingPauses(ledger.pool)).map(({ reason }) => reason)

test('an operator’s pause without an end is ended neither by time nor by a trial', async () => {
  await ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'maintenance')`)
  await openBreaker(ledger.pool, { forMs: -1 })
  expect(await reasons()).toEqual(['unavailable', 'operator'])
  expect((await claimTrial(ledger.dispatch())).submissions).toEqual([])
})

test('an operator’s pause with an end is over at that time, without a trial', async () => {
  const pauseFor = (interval: string) =>
    ledger.pool.query(
      `insert into outboxd.pause (reason, detail, until) values ('operator', 'x', clock_timestamp() + $1::interval)
       on conflict (reason) do update set until = excluded.until`,
      [interval],
    )
  await pauseFor('1 h')
  expect(await reasons()).toEqual(['operator'])
  expect((await claim(ledger.dispatch(), { submissions: 1 })).submissions).toEqual([])
  await pauseFor('-1 s')
  expect(await reasons()).toEqual([])
  expect((await claim(ledger.dispatch(), { submissions: 1 })).submissions).toHaveLength(1)
})

test('the database refuses a breaker that is half described', async () => {
  await expect(
    ledger.pool.query(`insert into outboxd.pause (reason, detail, state) values ('breaker', 'x', 'open')`),
  ).rejects.toThrow('check')
  await expect(ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('breaker', 'x')`)).rejects.toThrow(
    'check',
  )
})
