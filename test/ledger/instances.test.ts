import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { claimQueuedSubmissions } from '../../src/ledger/claims.ts'
import { deleteStaleInstances, readOrphanedSubmissions, writeHeartbeat } from '../../src/ledger/instances.ts'
import { readProblems } from '../../src/ledger/problems.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { openLedgerForFile } from '../support/ledger.ts'

const ledger = openLedgerForFile()

const instance = () => ({ id: randomUUID(), version: 'test', host: 'test', settings: {} })

/** Lets time pass for one or all instances. */
async function pass(seconds: number, id: string | null = null): Promise<void> {
  await ledger.pool.query(
    `update outboxd.instance set beat_at = beat_at - $1 * interval '1 s', unbroken_since = unbroken_since - $1 * interval '1 s'
     where id = coalesce($2, id)`,
    [seconds, id],
  )
}

/** An instance that has had a heartbeat every second for 6 s. */
async function steady(me = instance()) {
  await writeHeartbeat(ledger.pool, me)
  for (let i = 0; i < 6; i++) {
    await pass(1, me.id)
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
  (await readOrphanedSubmissions(ledger.pool, observer.id, () => true)).map(({ id }) => id)

test('an instance with steady heartbeats finds the record that a silent instance was sending', async () => {
  const dead = instance()
  await writeHeartbeat(ledger.pool, dead)
  const id = await sendingBy(dead)
  await pass(6, dead.id)
  expect(await orphaned(await steady())).toEqual([id])
})

test('a heartbeat says if an instance died that was sending a record', async () => {
  const [me, other] = [await steady(), instance()]
  const hasOrphans = async () => (await writeHeartbeat(ledger.pool, me)).hasOrphans
  await writeHeartbeat(ledger.pool, other)
  await sendingBy(other)
  expect(await hasOrphans()).toBe(false)
  await pass(6, other.id)
  expect(await hasOrphans()).toBe(true)
})

test('the problems of an instance stand as its last heartbeat says, and end with the next one or its death', async () => {
  const me = await steady()
  const problem = { kind: 'loop_failing', part: 'capture', detail: 'no room (53100)', ageMs: 60_000 } as const
  const standing = async () =>
    (await readProblems(ledger.pool)).map(({ kind, subject, detail }) => [kind, subject, detail])
  await writeHeartbeat(ledger.pool, me, { problems: [problem] })
  const told = [['loop_failing', `capture of ${me.id.slice(0, 8)}`, 'no room (53100)']]
  expect(await standing()).toEqual(told)
  expect((await readLedgerSnapshot(ledger.pool)).problems).toEqual({ loop_failing: 1 })
  const [{ sinceMs, seenMs } = { sinceMs: 0, seenMs: 0 }] = await readProblems(ledger.pool)
  expect(Math.round(seenMs - sinceMs)).toBe(60_000)
  await pass(31, me.id)
  expect(await standing()).toEqual([])
  await writeHeartbeat(ledger.pool, me, { problems: [problem] })
  expect(await standing()).toEqual(told)
  await writeHeartbeat(ledger.pool, me)
  expect(await standing()).toEqual([])
})

test('a record that was sent by an instance without any heartbeat is orphaned', async () => {
  const id = await sendingBy(instance())
  expect(await orphaned(await steady())).toEqual([id])
})

test('a record that a living instance sends is not orphaned, nor is the observer’s own', async () => {
  const [observer, living] = [await steady(), await steady()]
  await sendingBy(living)
  await sendingBy(observer)
  expect(await orphaned(observer)).toEqual([])
})

test('an instance that was silent for 4 s does not count as dead', async () => {
  const other = await steady()
  await sendingBy(other)
  await pass(4, other.id)
  expect(await orphaned(await steady())).toEqual([])
})

test('an instance that has just started finds no orphaned record', async () => {
  await sendingBy(instance())
  const newcomer = instance()
  await writeHeartbeat(ledger.pool, newcomer)
  await pass(4, newcomer.id)
  await writeHeartbeat(ledger.pool, newcomer)
  expect(await orphaned(newcomer)).toEqual([])
})

test('after an outage of the database no record is orphaned until all instances have had time for a heartbeat', async () => {
  const [observer, other] = [await steady(), await steady()]
  const id = await sendingBy(other)
  await pass(60)
  await writeHeartbeat(ledger.pool, observer)
  expect(await orphaned(observer)).toEqual([])
  for (let i = 0; i < 4; i++) {
    await pass(1)
    await writeHeartbeat(ledger.pool, observer)
  }
  expect(await orphaned(observer)).toEqual([])
  await pass(2)
  await writeHeartbeat(ledger.pool, observer)
  expect(await orphaned(observer)).toEqual([id])
})

test('after a gap of 2.5 s an instance judges others only after 5 s more', async () => {
  const [observer, other] = [await steady(), await steady()]
  const id = await sendingBy(other)
  await pass(6, other.id)
  expect(await orphaned(observer)).toEqual([id])
  await pass(3, observer.id)
  expect(await orphaned(observer)).toEqual([])
  await writeHeartbeat(ledger.pool, observer)
  expect(await orphaned(observer)).toEqual([])
})

test('an instance that was suspended does not judge others by its own old heartbeat', async () => {
  const [observer, other] = [await steady(), await steady()]
  await sendingBy(other)
  await pass(60)
  expect(await orphaned(observer)).toEqual([])
})

test('only the living instance that sends a record can settle it, and only if it does not have the claim in hand', async () => {
  const [observer, owner] = [await steady(), await steady()]
  const id = await sendingBy(owner)
  const held = new Set<string | null>()
  const forgotten = async (of: { id: string }) =>
    (await readOrphanedSubmissions(ledger.pool, of.id, ({ claimId }) => held.has(claimId))).map((each) => each.id)
  expect(await forgotten(owner)).toEqual([id])
  expect([await forgotten(observer), await orphaned(owner)]).toEqual([[], []])
  held.add((await ledger.row(id)).claim_id as string)
  expect(await forgotten(owner)).toEqual([])
})

test('only a record that is being sent can be orphaned', async () => {
  await ledger.capture([{}, { error: 'no', body: null }])
  expect(await orphaned(await steady())).toEqual([])
})

test('instances that have been silent for a day are deleted', async () => {
  const [dead, living] = [await steady(), await steady()]
  await pass(90_000, dead.id)
  await deleteStaleInstances(ledger.pool)
  const { rows } = await ledger.pool.query('select id from outboxd.instance')
  expect(rows).toEqual([{ id: living.id }])
})
