import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimQueuedSubmissions } from '../../src/ledger/claims.ts'
import {
  deleteStaleInstances,
  readOrphanedSubmissions,
  readOwnOrphanedSubmissions,
  writeHeartbeat,
} from '../../src/ledger/instances.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const instance = () => ({ id: randomUUID(), version: 'test', host: 'test' })

/** Lets time go by for one or all instances. */
async function pass(seconds: number, id: string | null = null): Promise<void> {
  await ledger.pool.query(
    `update outboxd.instance set beat_at = beat_at - $1 * interval '1 s', started_at = started_at - $1 * interval '1 s'
     where id = coalesce($2, id)`,
    [seconds, id],
  )
}

/** An instance that has been heard every three seconds for a while. */
async function steady(me = instance()) {
  await writeHeartbeat(ledger.pool, me)
  for (let i = 0; i < 5; i++) {
    await pass(3, me.id)
    await writeHeartbeat(ledger.pool, me)
  }
  return me
}

async function sendingBy({ id }: { id: string }): Promise<string> {
  await ledger.capture([{}])
  const [claimed] = await claimQueuedSubmissions(ledger.pool, {
    id: randomUUID(),
    instanceId: id,
    limit: 1,
    who: 'test',
  })
  return claimed?.id ?? ''
}

const orphaned = async (observer: { id: string }) =>
  (await readOrphanedSubmissions(ledger.pool, observer.id)).map(({ id }) => id)

test('what a silent instance was sending is abandoned, in the eyes of one that was heard all the while', async () => {
  const dead = instance()
  await writeHeartbeat(ledger.pool, dead)
  const id = await sendingBy(dead)
  await pass(13, dead.id)
  expect(await orphaned(await steady())).toEqual([id])
})

test('what an instance was sending of which nobody has ever heard is abandoned', async () => {
  const id = await sendingBy(instance())
  expect(await orphaned(await steady())).toEqual([id])
})

test('what a living instance sends is never abandoned, nor one’s own', async () => {
  const [observer, living] = [await steady(), await steady()]
  await sendingBy(living)
  await sendingBy(observer)
  expect(await orphaned(observer)).toEqual([])
})

test('one that was silent for a moment is not taken for dead', async () => {
  const other = await steady()
  await sendingBy(other)
  await pass(11, other.id)
  expect(await orphaned(await steady())).toEqual([])
})

test('a newcomer does not judge', async () => {
  await sendingBy(instance())
  const newcomer = instance()
  await writeHeartbeat(ledger.pool, newcomer)
  await pass(9, newcomer.id)
  await writeHeartbeat(ledger.pool, newcomer)
  expect(await orphaned(newcomer)).toEqual([])
})

test('after an outage of the database nobody judges until the others have had time to be heard again', async () => {
  const [observer, other] = [await steady(), await steady()]
  const id = await sendingBy(other)
  await pass(60)
  await writeHeartbeat(ledger.pool, observer)
  expect(await orphaned(observer)).toEqual([])
  for (let i = 0; i < 3; i++) {
    await pass(3)
    await writeHeartbeat(ledger.pool, observer)
  }
  expect(await orphaned(observer)).toEqual([])
  await pass(4)
  await writeHeartbeat(ledger.pool, observer)
  expect(await orphaned(observer)).toEqual([id])
})

test('an instance that was stopped and wakes up does not judge by its last sign of life', async () => {
  const [observer, other] = [await steady(), await steady()]
  await sendingBy(other)
  await pass(60)
  expect(await orphaned(observer)).toEqual([])
})

test('what a living instance is sending is settled by that instance alone, and only if it does not have the claim in hand', async () => {
  const [observer, owner] = [await steady(), await steady()]
  const id = await sendingBy(owner)
  const held = new Set<string | null>()
  const forgotten = async (of: { id: string }) =>
    (await readOwnOrphanedSubmissions(ledger.pool, of.id, ({ claimId }) => held.has(claimId))).map((each) => each.id)
  expect(await forgotten(owner)).toEqual([id])
  expect([await forgotten(observer), await orphaned(observer), await orphaned(owner)]).toEqual([[], [], []])
  held.add((await ledger.row(id)).claim_id as string)
  expect(await forgotten(owner)).toEqual([])
})

test('only what is on the wire can be abandoned', async () => {
  await ledger.capture([{}, { error: 'no', body: null }])
  expect(await orphaned(await steady())).toEqual([])
})

test('instances that have been silent for a day are forgotten', async () => {
  const [dead, living] = [await steady(), await steady()]
  await pass(90_000, dead.id)
  await deleteStaleInstances(ledger.pool)
  const { rows } = await ledger.pool.query('select id from outboxd.instance')
  expect(rows).toEqual([{ id: living.id }])
})
