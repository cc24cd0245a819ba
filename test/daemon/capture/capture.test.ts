import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { skipRows, stopCaptureOfTypeBriefly } from '../../../src/ledger/capture.ts'
import { countProblems, readProblems } from '../../../src/ledger/problems.ts'
import type { Mapping } from '../../../src/mapping/mapping.ts'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { beginTransaction } from '../../../src/postgres/database.ts'
import type { SleepFlagResult } from '../../../src/postgres/listener.ts'
import { mappingFrom } from '../../mapping/mappingOf.ts'
import { openCaptureLock, openLedgerForFile, setKeyOnFailure } from '../../support/ledger.ts'
import { openPool } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'
import { type CaptureOptions, openCapture } from './setupCapture.ts'

const ledger = openLedgerForFile()

const mappings = new Map(
  ['type: data', 'type: wrong'].map((type) => {
    const required = type === 'type: wrong' ? ', required: true' : ''
    const fields = `fields: { refused: { from: refused, type: integer${required} } }\nbody: { refused: "\${refused}" }`
    const mapping = mappingFrom(`${type}\nendpoint: data\n${fields}`)
    return [mapping.type, mapping]
  }),
)

const open = (options: CaptureOptions = {}) => openCapture(ledger.pool, { mappings, ...options })
const captureOnce = async (options: CaptureOptions = {}) => (await open(options)).capture.captureOnce()
const captureAll = async (options: CaptureOptions = {}) => (await open(options)).captureAll()

const insert = (rows: number, type = 'data', key: string | null = null) =>
  ledger.pool.query(`insert into outbox (type, key, payload) select $1, $2, '{}' from generate_series(1, $3)`, [
    type,
    key,
    rows,
  ])

async function statuses(): Promise<Record<string, number>> {
  const { rows } = await ledger.pool.query('select status, count(*)::int as n from outbox group by status')
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
}

test('a captured row gets the state of its submission', async () => {
  await insert(3)
  await insert(2, 'wrong')
  expect(await captureOnce()).toBe('rest')
  expect(await statuses()).toEqual({ queued: 3, rejected: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 3, rejected: 2 })
})

test('rows beyond the window stay in the outbox', async () => {
  await insert(5)
  expect(await captureOnce({ captureWindow: 3 })).toBe('again')
  expect(await captureOnce({ captureWindow: 3 })).toBe('full')
  expect(await statuses()).toEqual({ new: 2, queued: 3 })
})

test.each([
  ['records', 'insert on outboxd.submission'],
  ['marks', 'update on outbox'],
])('a crash while %s are written captures nothing, and the next round captures each row once', async (_, event) => {
  await insert(2)
  await ledger.pool.query(`create or replace function meddle() returns trigger language plpgsql as $$
    begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
    create or replace trigger meddle after ${event} for each statement execute function meddle()`)
  await expect(captureOnce()).rejects.toThrow('terminat')
  await ledger.pool.query('drop function meddle() cascade')
  expect(await statuses()).toEqual({ new: 2 })
  expect(await ledger.countStates()).toEqual({})

  await captureAll() // the killed session may hold capture's lock for a moment
  expect(await statuses()).toEqual({ queued: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 2 })
})

test('after a kill right after the COMMIT, the report of a record that was rejected at once is due', async () => {
  await insert(1)
  await insert(1, 'wrong')
  const onCaptured = () => {
    throw new Error('Connection terminated')
  }
  await expect(captureOnce({ onCaptured })).rejects.toThrow('terminated')
  const { rows } = await ledger.pool.query('select state, report_due as due from outboxd.submission order by seq')
  expect(rows).toEqual([
    { state: 'queued', due: false },
    { state: 'rejected', due: true },
  ])
})

test('a trigger that resets rows after their mark stops no other row, and the rows become `row_skipped`', async () => {
  await insert(3)
  await insert(1, 'data', 'good')
  await ledger.pool.query(`create or replace function meddle() returns trigger language plpgsql as $$
    begin update outbox set status = 'new' where id = new.id; return null; end $$;
    create or replace trigger meddle after update on outbox for each row when (new.key is null and pg_trigger_depth() = 0)
      execute function meddle()`)
  onTestFinished(() => ledger.pool.query('drop function meddle() cascade').then(() => {}))
  await captureOnce()
  await captureOnce()
  expect(await statuses()).toEqual({ new: 3, queued: 1 })
  expect(await ledger.countStates()).toEqual({ queued: 1 })
  expect(await skippedRows()).toEqual([{ times: 1 }, { times: 1 }, { times: 1 }])
  expect((await readProblems(ledger.pool, 10))[0]?.detail).toMatch(/^the table ignores the mark/)
  await insert(1, 'data', 'good')
  await captureOnce()
  expect(await ledger.countStates()).toEqual({ queued: 2 })
})

test('if a mark takes too long, batches become smaller until the table takes them', async () => {
  await ledger.pool.query(`create or replace function meddle() returns trigger language plpgsql as $$
    begin if (select count(*) from marked) > 10 then raise exception using errcode = '57014'; end if; return null; end $$;
    create or replace trigger meddle after update on outbox referencing new table as marked
      for each statement execute function meddle()`)
  onTestFinished(() => ledger.pool.query('drop function meddle() cascade').then(() => {}))
  const { captureAll, failedBatches: sizes } = await open()
  for (let rounds = 0; rounds < 3; rounds++) {
    await insert(40)
    await captureAll()
  }
  expect(await statuses()).toEqual({ queued: 120 })
  expect(await ledger.countStates()).toEqual({ queued: 120 })
  expect(sizes.slice(0, 2)).toEqual([40, 20])
  expect(sizes.slice(2).filter((size) => size > 13)).toEqual([])
  expect(await readProblems(ledger.pool, 10)).toEqual([])
})

test.each([
  '40001',
  '25006',
  '57P01',
  'P0001',
])('a trigger that refuses the mark of one row with %s holds up no other row, and is named in its own words', async (code) => {
  await insert(4)
  const [{ id }] = (await ledger.pool.query('select min(id)::text as id from outbox')).rows
  await ledger.pool.query(`create or replace function meddle() returns trigger language plpgsql as $$
    begin if old.id = ${id} then raise exception 'period is closed' using errcode = '${code}'; end if; return new; end $$;
    create or replace trigger meddle before update on outbox for each row execute function meddle()`)
  onTestFinished(() => ledger.pool.query('drop function meddle() cascade').then(() => {}))
  await captureAll()
  expect(await statuses()).toEqual({ new: 1, queued: 3 })
  expect(await ledger.countStates()).toEqual({ queued: 3 })
  const [problem] = await readProblems(ledger.pool, 10)
  expect(problem).toMatchObject({ kind: 'row_skipped', subject: id })
  expect(problem?.detail).toContain(`the table refuses the mark (${code}: period is closed), so`)
})

test('only one instance captures at a time', async () => {
  await insert(2)
  const other = openCaptureLock(ledger.pool)
  await other.withLock(async () => {
    expect(await captureOnce()).toBe('busy')
  })
  expect(await statuses()).toEqual({ new: 2 })
})

test('nothing is captured into a ledger that lost data', async () => {
  await insert(2)
  await ledger.capture([{}])
  await ledger.pool.query(`update outboxd.ledger set timeline = 'earlier'`)
  expect(await captureOnce()).toBe('waits')
  expect(await statuses()).toEqual({ new: 2 })
})

test('a key takes only a small part of the window: its other rows stay in the outbox, and other keys pass', async () => {
  await insert(700, 'data', 'crowded')
  await insert(4)
  await captureAll()
  // 24 of the first batch wait behind their head, which is fewer than 25, so a second batch follows.
  expect(await statuses()).toEqual({ new: 700 - 50, queued: 4 + 50 })
  await captureAll()
  expect((await statuses()).new).toBe(700 - 50)
})

test('records that wait behind an uncertain one take no room in the window', async () => {
  const line = (key: string) => Array.from({ length: 500 }, (_, i) => ({ key, outboxId: `${key}${i}` }))
  await ledger.capture([...line('a'), ...line('b')])
  await ledger.pool.query(`update outboxd.submission set state = 'uncertain', held = false, due_at = null, ended_at = now()
    where seq in (select min(seq) from outboxd.submission group by key)`)
  await insert(10)
  await insert(10, 'data', 'a')
  await captureAll()
  expect(await statuses()).toEqual({ queued: 10, new: 10 })
})

test('40 orders of 0.9 MB are captured in batches of at most 16 MB', async () => {
  await ledger.pool.query(`insert into outbox (type, payload)
    select 'data', jsonb_build_object('n', n, 'text', repeat('x', 900000)) from generate_series(1, 40) n`)
  const { captureAll, batches } = await open()
  await captureAll()
  expect(await statuses()).toEqual({ queued: 40 })
  expect(Math.max(...batches)).toBe(17)
})

test('a row that can be neither captured nor rejected is `row_skipped`, and its key waits', async () => {
  await insert(1)
  await insert(3, 'data', 'stuck')
  await insert(1, 'data', 'other')
  const { rows } = await ledger.pool.query(`select id::text from outbox where key = 'stuck' order by id limit 1`)
  const [stuck] = rows.map(({ id }) => id)
  await ledger.pool.query(`alter table outboxd.submission add constraint refused check (outbox_id <> '${stuck}')`)
  const { captureAll, skipped } = await open()
  await captureAll()
  expect(skipped).toEqual([stuck])
  expect(await statuses()).toEqual({ queued: 2, new: 3 })
  const [problem] = await readProblems(ledger.pool, 10)
  expect(problem).toMatchObject({ kind: 'row_skipped', subject: stuck, detail: expect.stringContaining('23514') })

  await makeSkippedRowsDue()
  await captureAll()
  const [again] = await readProblems(ledger.pool, 10)
  expect(Number(again?.retryMs) - Number(again?.seenMs)).toBeGreaterThan(19_000) // twice as long as the first time
  await ledger.pool.query('alter table outboxd.submission drop constraint refused')
  await makeSkippedRowsDue()
  await captureAll()
  expect(await statuses()).toEqual({ queued: 5 })
  expect(await readProblems(ledger.pool, 10)).toEqual([])
  const order = await ledger.pool.query(
    `select outbox_id::int as id from outboxd.submission where key = 'stuck' order by seq`,
  )
  expect(order.rows.map(({ id }) => id)).toEqual([Number(stuck), Number(stuck) + 1, Number(stuck) + 2])
})

test('KEY_ON_FAILURE=block: a row that cannot be captured is rejected in the words of Postgres, and later rows of its key wait', async () => {
  await setKeyOnFailure(ledger.pool, 'block')
  await ledger.pool.query(
    `insert into outbox (type, key, payload) values ('data', 'K', '{"refused": 1}'), ('data', 'K', '{}')`,
  )
  await ledger.pool.query(`alter table outboxd.submission add constraint refused check (body not like '%refused%')`)
  onTestFinished(() => ledger.pool.query('alter table outboxd.submission drop constraint refused').then(() => {}))
  await captureAll()
  const { rows } = await ledger.pool.query('select state, key, held, error from outboxd.submission order by seq')
  const error = 'the row cannot be captured: new row for relation "submission" violates check constraint "refused"'
  expect(rows).toEqual([
    { state: 'rejected', key: 'K', held: false, error },
    { state: 'queued', key: 'K', held: true, error: null },
  ])
})

test('a row whose key is too long for the ledger is rejected without the key, also if it cannot be captured', async () => {
  await ledger.pool.query(`insert into outbox (type, key, payload)
    select 'data', string_agg(md5(n::text), ''), '{}' from generate_series(1, 200) n`)
  await ledger.pool.query(
    `alter table outboxd.submission add constraint refused check (error like 'the row cannot be captured: %')`,
  )
  onTestFinished(() => ledger.pool.query('alter table outboxd.submission drop constraint refused').then(() => {}))
  await captureAll()
  const { rows } = await ledger.pool.query('select state, key from outboxd.submission')
  expect([rows, await statuses()]).toEqual([[{ state: 'rejected', key: null }], { rejected: 1 }])
})

test('if only a lock prevents its rejection, a row keeps its key and is skipped', async () => {
  await insert(1, 'data', 'K')
  await ledger.pool.query(`create sequence public.tries;
    create or replace function meddle() returns trigger language plpgsql as $$
    begin
      if nextval('public.tries') = 1 then raise exception using errcode = '23514'; end if;
      raise exception using errcode = '55P03';
    end $$;
    create or replace trigger meddle before insert on outboxd.submission for each row execute function meddle()`)
  onTestFinished(() => ledger.pool.query('drop function meddle() cascade; drop sequence public.tries').then(() => {}))
  await captureOnce()
  expect(await ledger.countStates()).toEqual({})
  expect(await readProblems(ledger.pool, 10)).toMatchObject([
    { kind: 'row_skipped', detail: expect.stringContaining('55P03') },
  ])
})

test('a lock on the ledger is not reported as the row’s fault', async () => {
  await insert(1)
  await using blocker = await beginTransaction(ledger.pool)
  await blocker.db.query('lock table outboxd.submission in exclusive mode')
  const impatient = openPool(ledger.url, { options: '-c lock_timeout=100' })
  onTestFinished(() => impatient.end())
  await captureOnce({ outbox: new Outbox(impatient, 'outbox', 1_000_000, ledger.pool) })
  expect(await readProblems(ledger.pool, 10)).toMatchObject([
    {
      kind: 'row_skipped',
      detail: expect.stringMatching(/could not be captured \(55P03: a lock.*tries again by itself/),
    },
  ])
})

/** Skips the first row, with its next try due now. @returns the row's id */
async function skipFirstRow(): Promise<string> {
  const { rows } = await ledger.pool.query<{ id: string }>('select min(id)::text as id from outbox')
  const outboxId = rows[0]?.id ?? ''
  await skipRows(ledger.pool, [outboxId], 'refused')
  await makeSkippedRowsDue()
  return outboxId
}

const makeSkippedRowsDue = () =>
  ledger.pool.query("update outboxd.problem set retry_at = now() where kind = 'row_skipped'")
const skippedRows = async () =>
  (await ledger.pool.query("select times::int from outboxd.problem where kind = 'row_skipped'")).rows

test('while the ledger has the settings of another daemon, nothing is captured, also no skipped row', async () => {
  await insert(1)
  await skipFirstRow()
  await insert(1)
  expect(await captureOnce({ settings: { KEY_ON_FAILURE: 'other' } })).toBe('waits')
  expect(await skippedRows()).toEqual([{ times: 1 }])
  expect(await statuses()).toEqual({ new: 2 })
})

test('capture takes a record before its problem, as write-back does, so the two cannot deadlock', async () => {
  await insert(1)
  await captureAll()
  await ledger.pool.query(`update outboxd.submission set report_due = false; update outbox set status = 'new';
    insert into outboxd.problem (kind, subject, detail) select 'row_conflict', id, 'before' from outbox`)
  await using writeBack = await beginTransaction(ledger.pool)
  await writeBack.db.query('select from outboxd.submission for update')
  const capturing = captureAll()
  await until(
    async () =>
      (
        await ledger.pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        )
      ).rowCount,
    (waiting) => waiting !== 0,
  )
  await writeBack.db.query('delete from outboxd.problem')
  await writeBack.commit()
  await capturing
  expect(await statuses()).toEqual({ queued: 1 })
})

describe('a skipped row that the ERP has locked', () => {
  async function lockFirstRow() {
    const transaction = await beginTransaction(ledger.pool)
    onTestFinished(() => transaction[Symbol.asyncDispose]())
    await transaction.db.query('select from outbox where id = (select min(id) from outbox) for update')
    return transaction
  }

  test('stays skipped, and is captured before later rows of its key', async () => {
    await insert(2, 'data', 'k')
    const id = await skipFirstRow()
    const lock = await lockFirstRow()
    await captureOnce()
    expect(await skippedRows()).toEqual([{ times: 2 }])
    expect(await readProblems(ledger.pool, 10)).toMatchObject([
      { kind: 'row_skipped', detail: expect.stringContaining('55P03: a lock') },
    ])
    await lock.commit()
    await makeSkippedRowsDue()
    await captureAll()
    const { rows } = await ledger.pool.query('select outbox_id as id from outboxd.submission order by seq')
    expect(rows.map((row) => row.id)).toEqual([id, String(Number(id) + 1)])
    expect(await skippedRows()).toEqual([])
  })
})

describe('a skipped row that is due again', () => {
  const captured = async () =>
    (await ledger.pool.query('select key from outboxd.submission order by seq')).rows.map(({ key }) => key)

  test('waits for room in the window', async () => {
    await ledger.capture([{}])
    await insert(1)
    await skipFirstRow()
    expect(await captureAll({ captureWindow: 1 })).toBe(1)
    expect(await skippedRows()).toEqual([{ times: 1 }])
    expect(await ledger.countStates()).toEqual({ queued: 1 })
    await captureAll({ captureWindow: 2 })
    expect(await ledger.countStates()).toEqual({ queued: 2 })
  })

  test('waits behind an earlier row of its key, and is then captured like a new row', async () => {
    await insert(1, 'data', 'k')
    const id = await skipFirstRow()
    const erp = await beginTransaction(ledger.pool)
    onTestFinished(() => erp[Symbol.asyncDispose]())
    await erp.db.query(`insert into outbox (id, type, key, payload) overriding system value
      values (${Number(id) - 1}, 'data', 'k', '{}'), (${Number(id) - 2}, 'data', 'l', '{}')`)
    await erp.commit()
    const form = await beginTransaction(ledger.pool)
    onTestFinished(() => form[Symbol.asyncDispose]())
    await form.db.query(`select from outbox where id = ${Number(id) - 1} for update`)
    await captureAll()
    expect(await captured()).toEqual(['l'])
    expect(await skippedRows()).toEqual([])
    await form.commit()
    await captureAll()
    await captureAll()
    const { rows } = await ledger.pool.query(
      `select outbox_id as id from outboxd.submission where key = 'k' order by seq`,
    )
    expect(rows.map((row) => row.id)).toEqual([String(Number(id) - 1), id])
    expect(await skippedRows()).toEqual([])
  })

  test('is followed by new rows, which do not wait until all that are due were tried', async () => {
    await insert(2)
    const { rows } = await ledger.pool.query<{ id: string }>('select id::text from outbox')
    await skipRows(
      ledger.pool,
      rows.map(({ id }) => id),
      'refused',
    )
    await makeSkippedRowsDue()
    await insert(1)
    expect(await captureOnce()).toBe('again')
    expect(await ledger.countStates()).toEqual({ queued: 2 })
    expect(await skippedRows()).toHaveLength(1)
  })

  test('is forgotten if the ERP has deleted it', async () => {
    await insert(1)
    const id = await skipFirstRow()
    await ledger.pool.query('delete from outbox where id = $1', [id])
    await captureAll()
    expect(await skippedRows()).toEqual([])
    expect(await readProblems(ledger.pool, 10)).toEqual([])
  })

  test('is forgotten if its id does not fit the column any more', async () => {
    await skipRows(ledger.pool, ['A-1', '99999999999999999999'], 'refused')
    await makeSkippedRowsDue()
    await captureAll()
    expect(await skippedRows()).toEqual([])
  })

  test('is not rejected if an earlier row of its key cannot be read', async () => {
    await insert(1, 'data', 'k')
    await skipFirstRow()
    const error = Object.assign(new Error('division by zero'), { code: '22012', severity: 'ERROR' })
    const outbox = new Outbox(ledger.pool, 'outbox', 1_000_000, ledger.pool)
    // The claim opens the table the second time.
    vi.spyOn(outbox, 'open')
      .mockResolvedValueOnce(await outbox.open())
      .mockRejectedValueOnce(error)
    await captureAll({ outbox })
    expect(await skippedRows()).toEqual([{ times: 2 }])
    expect(await ledger.countStates()).toEqual({})
  })

  test('waits while its key waits for an operator', async () => {
    await ledger.capture([
      { key: 'k', outboxId: 'x' },
      { key: 'k', outboxId: 'y' },
    ])
    await ledger.pool.query(`update outboxd.submission set state = 'uncertain', held = false, due_at = null, ended_at = now()
      where outbox_id = 'x'`)
    await insert(1, 'data', 'k')
    await skipFirstRow()
    await captureAll()
    expect(await captured()).toEqual(['k', 'k'])
    expect(await skippedRows()).toEqual([])
    expect(await readProblems(ledger.pool, 10)).toEqual([])
  })
})

test('a refused mark does not stop other keys, even if more keys wait than a small batch has rows', async () => {
  await stopCaptureOfTypeBriefly(ledger.pool, 'order', 'fails')
  for (const n of [1, 2, 3, 4, 5]) await insert(1, 'order', `k${n}`)
  for (const n of [1, 2, 3, 4, 5]) await insert(1, 'data', `k${n}`)
  await insert(1, 'data', 'poison')
  await ledger.pool.query(`alter table outbox add constraint refused check (key <> 'poison' or status = 'new')`)
  onTestFinished(() => ledger.pool.query('alter table outbox drop constraint refused').then(() => {}))
  await insert(3, 'data')
  await captureAll()
  expect(await statuses()).toEqual({ new: 11, queued: 3 })
})

test('a skipped row that fails as if every row would does not stop capture of new rows', async () => {
  await insert(1, 'denied')
  const id = await skipFirstRow()
  await insert(2)
  const denying = new (class extends Map<string, Mapping> {
    override get(type: string): Mapping | undefined {
      if (type === 'denied') throw Object.assign(new Error('no'), { code: '42501', severity: 'ERROR' })
      return super.get(type)
    }
  })(mappings)
  await captureAll({ mappings: denying })
  expect(await statuses()).toEqual({ new: 1, queued: 2 })
  expect(await skippedRows()).toEqual([{ times: 2 }])
  expect(await readProblems(ledger.pool, 10)).toMatchObject([
    {
      kind: 'row_skipped',
      subject: id,
      detail: expect.stringMatching(/could not be captured \(42501\).*tries again by itself/),
    },
  ])
})

/** Returns what tells a row of the outbox that was created long ago. */
async function readOldCreation(): Promise<string> {
  await insert(1)
  await captureAll()
  const { rows } = await ledger.pool.query<{ created: string }>(
    `select left(row_created, 8) || ' 2020-01-01T00:00:00.000000Z' as created from outboxd.submission`,
  )
  await ledger.reset()
  return rows[0]?.created ?? ''
}

test('later rows of a key wait behind a row in conflict from the first round on', async () => {
  const created = await readOldCreation()
  await insert(1, 'data', 'other')
  await insert(3, 'data', 'K')
  const { rows } = await ledger.pool.query<{ id: string }>('select id::text from outbox order by id')
  const [other = '', first = '', conflicting = '', behind = ''] = rows.map(({ id }) => id)
  await ledger.capture([{ outboxId: conflicting, created }])
  await captureAll()
  const waiting = await ledger.pool.query<{ id: string }>(
    `select id::text from outbox where status = 'new' order by id`,
  )
  expect(waiting.rows.map(({ id }) => id)).toEqual([conflicting, behind])
  const taken = await ledger.pool.query<{ id: string }>('select outbox_id as id from outboxd.submission order by seq')
  expect(taken.rows.map(({ id }) => id)).toEqual([conflicting, other, first])
  expect((await readProblems(ledger.pool, 10)).map(({ kind, subject }) => [kind, subject])).toEqual([
    ['row_conflict', conflicting],
  ])
})

test('after 1,000 rows in conflict nothing more is captured, because each query for new rows lists them', async () => {
  const created = await readOldCreation()
  await insert(1_600)
  const { rows } = await ledger.pool.query<{ id: string }>('select id::text from outbox order by id')
  await ledger.capture(rows.map(({ id }) => ({ outboxId: id, created })))
  const { capture } = await open({ captureWindow: 10_000 })
  expect([await capture.captureOnce(), await capture.captureOnce()]).toEqual(['again', 'again'])
  await expect(capture.captureOnce()).rejects.toThrow('at least 1000 rows of the outbox are not those')
  expect(await countProblems(ledger.pool)).toEqual([{ kind: 'row_conflict', problems: 1_000 }])
  await ledger.pool.query(`update outboxd.problem set retry_at = clock_timestamp()`)
  expect(await capture.captureOnce()).toBe('again')
})

describe('CAPTURE_WINDOW', () => {
  test('with less than a quarter of it free, new rows wait, and are then captured in one batch', async () => {
    await ledger.capture(Array.from({ length: 76 }, () => ({})))
    await insert(30)
    const { capture, batches } = await open({ captureWindow: 100 })
    expect(await capture.captureOnce()).toBe('full')
    await ledger.pool.query(`update outboxd.submission set state = 'discarded', due_at = null, ended_at = now()
      where seq = (select min(seq) from outboxd.submission)`)
    expect(await capture.captureOnce()).toBe('again')
    expect(batches).toEqual([25])
  })

  test('any room is enough for a skipped row', async () => {
    await ledger.capture(Array.from({ length: 99 }, () => ({})))
    await insert(1)
    await skipFirstRow()
    await captureAll({ captureWindow: 100 })
    expect(await skippedRows()).toEqual([])
    expect(await statuses()).toEqual({ queued: 1 })
  })
})

describe('runOnce', () => {
  const listener = (result: SleepFlagResult = 'asleep') => ({
    setSleepFlag: vi.fn(async () => result),
    clearSleepFlag: vi.fn(),
  })

  test('a round that leaves rows is followed at once, and inserts need not notify', async () => {
    await insert(501)
    const awake = listener()
    const { capture, batches, wakes } = await open({ listener: awake })
    expect(await capture.runOnce()).toBe(0)
    expect([batches, wakes]).toEqual([[500], ['dispatch']])
    expect(awake.clearSleepFlag).toHaveBeenCalledTimes(1)
  })

  test('after the last rows capture looks again soon, and sets the sleep flag only when none are left', async () => {
    await insert(2)
    const awake = listener()
    const { capture, batches } = await open({ listener: awake })
    expect(await capture.runOnce()).toBe(25)
    expect([batches, awake.setSleepFlag.mock.calls]).toEqual([[2], []])
    expect(await capture.runOnce()).toBe(10_000)
  })

  test.each([
    ['after the sleep flag is set, it looks once more', 'set', 0],
    ['while new rows notify this instance, it looks for others every ten seconds', 'asleep', 10_000],
    ['while transactions are open that will not notify, it looks again and again', 'writers', 100],
    ['without a sleep flag it looks every second', 'unavailable', 1_000],
  ] as const)('%s', async (_, result, waitMs) => {
    expect(await (await open({ listener: listener(result) })).capture.runOnce()).toBe(waitMs)
  })

  test('while rows wait that cannot be captured, it looks every second, and inserts need not notify', async () => {
    await stopCaptureOfTypeBriefly(ledger.pool, 'data', 'fails')
    await insert(1)
    const awake = listener()
    expect(await (await open({ listener: awake })).capture.runOnce()).toBe(1_000)
    expect([awake.setSleepFlag.mock.calls, awake.clearSleepFlag.mock.calls]).toEqual([[], [[]]])
  })

  test('while the window is full, capture looks again after half a second', async () => {
    await ledger.capture([{}])
    await insert(1)
    expect(await (await open({ captureWindow: 1 })).capture.runOnce()).toBe(500)
  })

  test('if another instance captures, this one looks again after a short random time', async () => {
    await insert(1)
    const { capture } = await open()
    await openCaptureLock(ledger.pool).withLock(async () => {
      const waitMs = await capture.runOnce()
      expect([waitMs >= 20, waitMs < 100]).toEqual([true, true])
    })
  })

  test('while this instance may not capture, it looks again after a second', async () => {
    await insert(1)
    const { capture } = await open({ settings: { KEY_ON_FAILURE: 'other' } })
    expect(await capture.runOnce()).toBe(1_000)
    expect(await statuses()).toEqual({ new: 1 })
  })
})
