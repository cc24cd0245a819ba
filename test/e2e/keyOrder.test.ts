import { readFileSync } from 'node:fs'
import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { install } from './installation.ts'

const recordsMost = 500
const keys = 20
/** Number of records before the instances start. The others are committed while the instances work. */
const recordsBefore = 200

test('three instances send the records of each key in order of their ids, in any order of commits, and lose none', async () => {
  const { pool, url, startInstance, arrivals } = await install({
    'data.yaml': readFileSync('mappings/data.yaml', 'utf8'),
  })
  // The earliest time at which each record was claimed: the start of the transaction that captured it.
  await pool.query(`create table claimed (outbox_id text, after timestamptz);
    create function note() returns trigger language plpgsql as $$
    begin insert into public.claimed values (new.outbox_id, now()); return null; end $$;
    create trigger note after insert on outboxd.submission for each row execute function note()`)
  // A small window, so that records wait in the outbox and many pairs have to be ordered.
  const committed = await commitInRandomOrder(url, async () => {
    for (let i = 0; i < 3; i++) await startInstance({ CAPTURE_WINDOW: '60' })
  })
  await vi.waitFor(
    async () => {
      const { rows } = await pool.query(`select status, count(*)::int as n from outbox group by status`)
      expect(rows).toEqual([{ status: 'completed', n: recordsMost }])
    },
    { timeout: 100_000, interval: 200 },
  )

  const sent = (await arrivals()).map((body) => /"field2":"(\w+)"/.exec(body)?.[1] ?? '')
  expect([...sent].sort()).toEqual([...committed.keys()].sort())

  const { rows: claims } = await pool.query<{ id: string; ms: number }>(
    `select outbox_id as id, extract(epoch from after)::float8 * 1000 as ms from claimed`,
  )
  const claimedMs = new Map(claims.map(({ id, ms }) => [id, ms]))
  const arrivedAt = new Map(sent.map((marker, at) => [marker, at]))
  const records = [...committed].map(([marker, record]) => ({
    ...record,
    arrivedAt: arrivedAt.get(marker) ?? -1,
    claimedMs: claimedMs.get(record.id) ?? 0,
  }))
  let pairs = 0
  let inverted = 0
  for (const one of records) {
    for (const other of records) {
      if (one.key !== other.key || BigInt(one.id) >= BigInt(other.id)) continue
      if (one.committedMs > other.committedMs) inverted += 1
      if (Math.max(one.committedMs, other.committedMs) >= Math.min(one.claimedMs, other.claimedMs)) continue
      pairs += 1
      expect(one.arrivedAt, `${one.id} before ${other.id} of key ${one.key}`).toBeLessThan(other.arrivedAt)
    }
  }
  expect(pairs).toBeGreaterThan(500)
  expect(inverted).toBeGreaterThan(100)
})

interface Committed {
  id: string
  key: string
  /** The latest time of its commit, on the database's clock. */
  committedMs: number
}

/** Inserts the records in transactions that overlap and end in random order. A tenth of them is rolled back. */
async function commitInRandomOrder(url: string, start: () => Promise<void>): Promise<Map<string, Committed>> {
  const sessions = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const client = new pg.Client(url)
      await client.connect()
      onTestFinished(() => client.end())
      return { client, pending: new Map<string, Omit<Committed, 'committedMs'>>() }
    }),
  )
  const committed = new Map<string, Committed>()
  let inserted = 0
  const end = async ({ client, pending }: (typeof sessions)[number]) => {
    const undo = inserted < recordsMost && Math.random() < 0.1
    await client.query(undo ? 'rollback' : 'commit')
    const { rows } = await client.query<{ ms: number }>(
      `select extract(epoch from clock_timestamp())::float8 * 1000 as ms`,
    )
    if (undo) inserted -= pending.size
    else for (const [marker, record] of pending) committed.set(marker, { ...record, committedMs: rows[0]?.ms ?? 0 })
    pending.clear()
  }
  let started: Promise<void> | undefined
  for (let marker = 0; committed.size < recordsMost; marker++) {
    if (committed.size >= recordsBefore) started ??= start()
    const session = sessions[Math.floor(Math.random() * sessions.length)]
    if (session === undefined) continue
    if (session.pending.size > 0 && (inserted >= recordsMost || Math.random() < 0.3)) await end(session)
    else if (inserted < recordsMost) {
      if (session.pending.size === 0) await session.client.query('begin')
      const key = `key${Math.floor(Math.random() * keys)}`
      const payload = { customerId: 'C1', orderDate: '2026-11-20T10:00:00Z', amount: 1, field2: `m${marker}` }
      const { rows } = await session.client.query<{ id: string }>(
        `insert into outbox (type, key, payload) values ('data', $1, $2) returning id`,
        [key, JSON.stringify(payload)],
      )
      session.pending.set(`m${marker}`, { id: rows[0]?.id ?? '', key })
      inserted += 1
    }
  }
  await started
  return committed
}
