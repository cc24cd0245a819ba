import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { appendLogsToChain } from '../../src/ledger/audit/chain.ts'
import { verifyChain } from '../../src/ledger/audit/verifyChain.ts'
import { readLedgerBinding, readUniqueLedgerName } from '../../src/ledger/binding.ts'
import { createDatabase } from '../support/database.ts'

/** A ledger of an earlier version, with rows in it, comes through the migration that follows. */

const folder = join(import.meta.dirname, '..', '..', 'migrations')

/** Makes a database as it was before the named migration, and returns it with a function that applies the migration. */
async function before(name: string) {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  await pool.query('create schema outboxd')
  const apply = (file: string) => pool.query(readFileSync(join(folder, file), 'utf8'))
  for (const file of readdirSync(folder).sort()) if (/^\d/.test(file) && file < name) await apply(file)
  return { pool, migrate: () => apply(name) }
}

/** Inserts rows into a ledger of that time. */
function rowsOf(pool: pg.Pool) {
  return async (state: string, columns: Record<string, unknown> = {}) => {
    const id = randomUUID()
    const given = { due_at: null, claim_id: null, instance_id: null, job_id: null, poll_at: null, ended_at: null }
    const values: Record<string, unknown> = { ...given, ...columns }
    const names = Object.keys(values)
    await pool.query(
      `insert into outboxd.submission (id, outbox_id, type, resource, payload, body, recorded_at, state, idempotency_key,
         ${names.join(', ')})
       values ($1::uuid, $1::text, 'data', 'data', '{}', '{}', now(), $2, $1::uuid,
         ${names.map((_, i) => `$${i + 3}`).join(', ')})`,
      [id, state, ...Object.values(values)],
    )
    return id
  }
}

test('0007: rows in every state come through, and those that may have arrived or have an operator’s id are marked', async () => {
  const { pool, migrate } = await before('0007_arrivals.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  const polled = { job_id: some, poll_at: now, accepted_at: now }
  const ids = {
    queued: await add('queued', { due_at: now }),
    sending: await add('sending', { claim_id: some, instance_id: some }),
    accepted: await add('accepted', { ...polled, transaction_id: 'tx-1' }),
    resolved: await add('accepted', { ...polled, transaction_id: 'tx-2' }),
    completed: await add('completed', { ended_at: now, transaction_id: 'tx-3', done_ms: 5 }),
    failed: await add('failed', { ended_at: now, transaction_id: 'tx-4', done_ms: 5 }),
    unknown: await add('failed', { ended_at: now, transaction_id: 'tx-5' }),
    servedBadly: await add('failed', { ended_at: now, in_doubt: true, server_errors: 3 }),
    rejected: await add('rejected', { ended_at: now }),
    refusedLate: await add('rejected', { ended_at: now, in_doubt: true }),
    uncertain: await add('uncertain', { ended_at: now, in_doubt: true }),
    discarded: await add('discarded', { ended_at: now }),
  }
  await pool.query(
    `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
     values ($1, 'uncertain', 'accepted', 1, 'resolved: arrived as tx-2', 'operator')`,
    [ids.resolved],
  )
  await migrate()
  const named = async (column: string) => {
    const { rows } = await pool.query<{ id: string }>(`select id from outboxd.submission where ${column}`)
    return rows.map(({ id }) => Object.entries(ids).find(([, each]) => each === id)?.[0]).sort()
  }
  expect(await named('may_have_arrived')).toEqual(['refusedLate', 'servedBadly', 'unknown'])
  expect(await named('id_by_person')).toEqual(['resolved'])
  expect(await named('not polled_rarely')).toHaveLength(12)
})

test('0013: a record that failed under an id from an operator may have arrived', async () => {
  const { pool, migrate } = await before('0013_persons_ids.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  const ended = { ended_at: now, transaction_id: 'tx', done_ms: 5 }
  const ids = {
    queued: await add('queued', { due_at: now }),
    sending: await add('sending', { claim_id: some, instance_id: some }),
    accepted: await add('accepted', { job_id: some, poll_at: now, accepted_at: now, transaction_id: 'tx' }),
    completed: await add('completed', ended),
    completedByPerson: await add('completed', ended),
    failed: await add('failed', ended),
    failedByPerson: await add('failed', ended),
    failedByAnother: await add('failed', { ...ended, transaction_id: 'tx-2' }),
    rejected: await add('rejected', { ended_at: now }),
    uncertain: await add('uncertain', { ended_at: now, in_doubt: true }),
    discarded: await add('discarded', { ended_at: now }),
  }
  for (const id of [ids.completedByPerson, ids.failedByPerson, ids.failedByAnother])
    await pool.query(
      `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
       values ($1, 'uncertain', 'accepted', 1, 'resolved: arrived as tx', 'operator')`,
      [id],
    )
  const counted = 'select state, sum(delta)::int as n from outboxd.state_delta group by state order by state'
  const counts = (await pool.query(counted)).rows
  await migrate()
  const named = async (column: string) => {
    const { rows } = await pool.query<{ id: string }>(`select id from outboxd.submission where ${column}`)
    return rows.map(({ id }) => Object.entries(ids).find(([, each]) => each === id)?.[0]).sort()
  }
  expect(await named('may_have_arrived')).toEqual(['failedByPerson'])
  expect(await named('id_by_person')).toEqual(['completedByPerson', 'failedByPerson'])
  expect((await pool.query(counted)).rows).toEqual(counts)
})

test('0014: rows in every state come through, and an operator finds them by idempotency key and end of id', async () => {
  const { pool, migrate } = await before('0014_lookups.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  const ids = [
    await add('queued', { due_at: now, key: 'a key' }),
    await add('sending', { claim_id: some, instance_id: some }),
    await add('accepted', { job_id: some, poll_at: now, accepted_at: now, transaction_id: 'tx' }),
  ]
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded'])
    ids.push(await add(state, { ended_at: now, key: 'k'.repeat(500) }))
  await migrate()
  for (const id of ids) {
    const found = await pool.query(
      'select id from outboxd.submission where idempotency_key = $1 and right(id::text, 6) = right($1::uuid::text, 6)',
      [id],
    )
    expect(found.rows).toEqual([{ id }])
  }
})

test('0015: rows in every state come through as they are, and no request has been counted yet', async () => {
  const { pool, migrate } = await before('0015_request_count.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  await add('queued', { due_at: now })
  await add('sending', { claim_id: some, instance_id: some })
  await add('accepted', { job_id: some, poll_at: now, accepted_at: now, transaction_id: 'tx' })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  const rows = 'select * from outboxd.submission order by seq'
  const before0015 = (await pool.query(rows)).rows
  expect(before0015).toHaveLength(8)
  await migrate()
  expect((await pool.query(rows)).rows).toEqual(before0015)
  expect((await pool.query('select from outboxd.request_count')).rowCount).toBe(0)
})

test('0016: instances come through, and none has been asked to reload', async () => {
  const { pool, migrate } = await before('0016_reload.sql')
  await rowsOf(pool)('completed', { ended_at: new Date(), transaction_id: 'tx', done_ms: 5 })
  await pool.query("insert into outboxd.instance (id, version, host) values (gen_random_uuid(), '1', 'erp-1')")
  await migrate()
  const { rows } = await pool.query('select host, reload_asked, reload_answered, reload_problem from outboxd.instance')
  expect(rows).toEqual([{ host: 'erp-1', reload_asked: 0, reload_answered: 0, reload_problem: null }])
})

test('0018: rows in every state come through with their events; only completed and discarded rows can be deleted', async () => {
  const { pool, migrate } = await before('0018_retention.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  await add('queued', { due_at: now })
  await add('sending', { claim_id: some, instance_id: some })
  await add('accepted', { job_id: some, poll_at: now, accepted_at: now, transaction_id: 'tx' })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  await pool.query(`insert into outboxd.submission_event (submission_id, to_state, attempt, cause, who)
    select id, state, 0, 'test', 'test' from outboxd.submission`)
  const rows = 'select outbox_id, state, payload, body, ended_at from outboxd.submission order by seq'
  const before0018 = (await pool.query(rows)).rows
  await migrate()
  expect((await pool.query(rows)).rows).toEqual(before0018)
  const gone = await Promise.all(
    before0018.map(({ outbox_id }) =>
      pool.query('delete from outboxd.submission where outbox_id = $1', [outbox_id]).then(
        () => true,
        () => false,
      ),
    ),
  )
  const states = before0018.filter((_, i) => gone[i]).map(({ state }) => state)
  expect(states).toEqual(['completed', 'discarded'])
  expect((await pool.query('select from outboxd.submission_event')).rowCount).toBe(6)
  const counted = 'select state, sum(delta)::int as n from outboxd.state_delta group by state having sum(delta) <> 0'
  expect((await pool.query(counted)).rows.every(({ n }) => n === 1)).toBe(true)
})

test('0019: records that were pruned before stay known for a year', async () => {
  const { pool, migrate } = await before('0019_forgetting.sql')
  await rowsOf(pool)('completed', { ended_at: new Date() })
  await pool.query(
    `insert into outboxd.pruned_submission (outbox_id, outbox, id, type, recorded_at, state, ended_at)
     select outbox_id || 'x', outbox, id, type, recorded_at, state, ended_at from outboxd.submission`,
  )
  await migrate()
  const { rows } = await pool.query(
    `select was_gone, look_at > now() + interval '365 days' as later from outboxd.pruned_submission`,
  )
  expect(rows).toEqual([{ was_gone: false, later: true }])
})

test('0020: rows in every state and slots come through; the new counts begin empty', async () => {
  const { pool, migrate } = await before('0020_minutes.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  await add('queued', { due_at: now })
  await add('sending', { claim_id: some, instance_id: some })
  await add('accepted', { job_id: some, poll_at: now, accepted_at: now, transaction_id: 'tx' })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  await pool.query('insert into outboxd.slot (id, permits, spent_on_submissions) values (1, 12, 3)')
  const rows = 'select * from outboxd.submission order by seq'
  const before0020 = (await pool.query(rows)).rows
  await migrate()
  expect((await pool.query(rows)).rows).toEqual(before0020)
  expect(
    (await pool.query('select spent_on_submissions, spent_on_polls, spent_on_others from outboxd.slot')).rows,
  ).toEqual([{ spent_on_submissions: 3, spent_on_polls: 0, spent_on_others: 0 }])
  expect((await pool.query('select from outboxd.period union all select from outboxd.request_hour')).rowCount).toBe(0)
})

test('0021: rows in every state come through with their events, and the operator’s pause becomes an act', async () => {
  const { pool, migrate } = await before('0021_audit.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  await add('queued', { due_at: now })
  await add('sending', { claim_id: some, instance_id: some })
  await add('accepted', { job_id: some, poll_at: now, accepted_at: now, transaction_id: 'tx' })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  await pool.query(`insert into outboxd.submission_event (submission_id, to_state, attempt, cause, who)
    select id, state, 0, 'test', 'test' from outboxd.submission`)
  await pool.query(`insert into outboxd.pause (reason, since, until, detail) values
    ('operator', '2026-11-01T00:00Z', '2026-11-01T02:00Z', 'year-end (again) (operator alice)'),
    ('throttled', now(), now(), 'slow down')`)
  const rows =
    'select s.*, e.id as event, e.cause from outboxd.submission s join outboxd.submission_event e on e.submission_id = s.id order by s.seq'
  const before0021 = (await pool.query(rows)).rows
  expect(before0021).toHaveLength(8)
  await migrate()
  expect((await pool.query(rows)).rows).toMatchObject(before0021)
  const { rows: acts } = await pool.query('select at, act, who, reason, until from outboxd.operator_act')
  expect(acts).toEqual([
    {
      at: new Date('2026-11-01T00:00Z'),
      act: 'pause',
      who: 'operator alice',
      reason: 'year-end (again)',
      until: new Date('2026-11-01T02:00Z'),
    },
  ])
  await expect(pool.query('update outboxd.operator_act set reason = null')).rejects.toThrow('append-only')
  await expect(pool.query('delete from outboxd.operator_act')).rejects.toThrow('append-only')
})

test('0022: events come through, without amounts', async () => {
  const { pool, migrate } = await before('0022_amounts.sql')
  const id = await rowsOf(pool)('completed', { ended_at: new Date() })
  await pool.query(
    `insert into outboxd.submission_event (submission_id, to_state, attempt, cause, who) values ($1, 'completed', 1, 'x', 'y')`,
    [id],
  )
  await migrate()
  const { rows } = await pool.query('select submission_id, cause, amounts from outboxd.submission_event')
  expect(rows).toEqual([{ submission_id: id, cause: 'x', amounts: null }])
})

test('0023: rows in every state come through, even with a type that is too long for an index', async () => {
  const { pool, migrate } = await before('0023_types.sql')
  const add = rowsOf(pool)
  const now = new Date()
  await add('queued', { due_at: now })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  const long = Array.from({ length: 5_000 }, () => randomUUID()).join('')
  await pool.query('update outboxd.submission set type = $1', [long])
  const rows = 'select * from outboxd.submission order by seq'
  const before0023 = (await pool.query(rows)).rows
  await migrate()
  expect((await pool.query(rows)).rows).toEqual(before0023)
})

test('0024: rows in every state come through with their events, and the first chain has all, even emptied ones', async () => {
  const { pool, migrate } = await before('0024_chain.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  await add('queued', { due_at: now })
  await add('sending', { claim_id: some, instance_id: some })
  await add('accepted', { job_id: some, poll_at: now, accepted_at: now, transaction_id: 'tx' })
  for (const state of ['failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  await add('completed', { ended_at: now, emptied_at: now })
  await pool.query(`insert into outboxd.submission_event (submission_id, to_state, attempt, cause, who, detail)
    select id, state, 0, 'replay', 'operator x', '{"former": {"code": "E003"}}' from outboxd.submission`)
  const rows = 'select outbox_id, state, payload, ended_at from outboxd.submission order by seq'
  const before0024 = (await pool.query(rows)).rows
  expect(before0024).toHaveLength(8)
  await migrate()
  expect((await pool.query(rows)).rows).toEqual(before0024)
  expect(await appendLogsToChain(pool, () => true)).toMatchObject({ end: 'through', blocks: 1, behindMs: 0 })
  expect(await verifyChain(pool, null)).toMatchObject({ broken: null, entries: 8, waiting: 0 })
})

test('0025: rows in every state come through, and the planner knows how rare a key is', async () => {
  const { pool, migrate } = await before('0025_rarity.sql')
  const add = rowsOf(pool)
  const now = new Date()
  await add('queued', { due_at: now })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  await pool.query(
    `insert into outboxd.submission (id, outbox_id, type, key, resource, payload, body, recorded_at, state, idempotency_key, due_at, ended_at)
     select gen_random_uuid(), 'o' || n, 'data', 'K' || n / 2, 'data', '{}', '{}', now(), 'completed', gen_random_uuid(), null, now()
     from generate_series(1, 4000) n`,
  )
  const rows = 'select * from outboxd.submission order by seq'
  const before0025 = (await pool.query(rows)).rows
  const estimated = async () => {
    const { rows: plans } = await pool.query(
      `explain (format json) select from outboxd.submission where hashtextextended(key, 0) = hashtextextended('K7', 0)`,
    )
    return plans[0]['QUERY PLAN'][0].Plan['Plan Rows']
  }
  await pool.query('analyze outboxd.submission')
  expect(await estimated()).toBe(20) // one in two hundred
  await migrate()
  expect((await pool.query(rows)).rows).toEqual(before0025)
  expect(await estimated()).toBeLessThan(5)
})

test('0032: rows in every state come through; the ledger gets a name, and a service only when a daemon starts', async () => {
  const { pool, migrate } = await before('0032_binding.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  await add('queued', { due_at: now })
  await add('sending', { claim_id: some, instance_id: some })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  await pool.query(`insert into outboxd.instance_setting (instance_id, host, requests, window_ms, request_timeout_ms, key_on_failure)
    values (gen_random_uuid(), 'erp-1', 100, 60000, 30000, 'continue')`)
  const rows = 'select * from outboxd.submission order by seq'
  const before0032 = (await pool.query(rows)).rows
  await migrate()
  expect((await pool.query(rows)).rows).toEqual(before0032)
  expect((await readLedgerBinding(pool)).served).toBeNull()
  expect(await readUniqueLedgerName(pool)).toMatch(/^[0-9a-f-]{36} in /)
  expect((await pool.query('select given from outboxd.instance_setting')).rows).toEqual([{ given: {} }])
})

test('0037 and 0038: rows in every state come through as they are, and none belongs to a document', async () => {
  const { pool, migrate } = await before('0037_document.sql')
  const add = rowsOf(pool)
  const now = new Date()
  const some = randomUUID()
  await add('queued', { due_at: now })
  await add('sending', { claim_id: some, instance_id: some })
  for (const state of ['completed', 'failed', 'rejected', 'uncertain', 'discarded']) await add(state, { ended_at: now })
  const rows = 'select * from outboxd.submission order by seq'
  const before0037 = (await pool.query(rows)).rows
  await migrate()
  await pool.query(readFileSync(join(folder, '0038_document_index.sql'), 'utf8'))
  const none = { document: null, request_digest: null }
  expect((await pool.query(rows)).rows).toEqual(before0037.map((row) => ({ ...row, ...none })))
})
