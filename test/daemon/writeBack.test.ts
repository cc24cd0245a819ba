import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { DaemonContext } from '../../src/daemon/context.ts'
import { WriteBack } from '../../src/daemon/writeBack.ts'
import type { ReportResult } from '../../src/model/outbox.ts'
import { type Setup, setup } from '../outbox/setup.ts'
import { until } from '../support/until.ts'

interface Given extends Setup {
  writeBack: WriteBack
  reported: ReportResult[]
  wake: ReturnType<typeof vi.fn>
}

/** A table with captured rows whose records are completed. */
async function completed(rows: number): Promise<Given> {
  const given = await setup()
  await given.pool.query(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, $1)`, [rows])
  while ((await given.capture(1_000)).length > 0);
  await given.pool.query(
    `update outboxd.submission set state = 'completed', due_at = null, held = false, ended_at = now(), report_due = true`,
  )
  return { ...given, ...writeBackOf(given) }
}

/** @param onLocked called after the lock is taken, and before the states are read */
function writeBackOf({ pool, outbox }: Pick<Setup, 'pool' | 'outbox'>, onLocked = async () => {}) {
  const reported: ReportResult[] = []
  const wake = vi.fn()
  const databases = {
    ledger: pool,
    outbox,
    history: {
      async stands() {
        await onLocked()
        return true
      },
    },
    hasOwnSettings: async () => true,
  }
  const writeBack = new WriteBack({
    clock: systemClock,
    databases,
    telemetry: { reported: (told: readonly ReportResult[]) => void reported.push(...told) },
    wakeups: { report: { wake } },
  } as unknown as DaemonContext)
  return { writeBack, reported, wake }
}

/** Runs rounds as the daemon does, until one says that it may wait. */
async function runUntilIdle({ writeBack }: Given): Promise<void> {
  while ((await writeBack.runOnce()) === 0);
}

async function trigger({ pool }: Setup, ids: readonly number[], what: string): Promise<void> {
  await pool.query(`create function meddle() returns trigger language plpgsql as $$
    begin if old.id = any('{${ids.join()}}') then ${what}; end if; return new; end $$;
    create trigger meddle before update on outbox for each row execute function meddle()`)
}

const counts = async ({ pool }: Setup) => {
  const written = await pool.query(`select from outbox where status = 'completed'`)
  const due = await pool.query('select from outboxd.submission where report_due')
  return { written: written.rowCount, due: due.rowCount }
}
const problems = async ({ pool }: Setup) =>
  (await pool.query('select kind, subject, detail from outboxd.problem order by subject')).rows

test('due states are written and ticked off', async () => {
  const given = await completed(3)
  expect(await given.writeBack.runOnce()).toBe(10_000)
  expect(await counts(given)).toEqual({ written: 3, due: 0 })
})

test('a full batch is followed by a round at once', async () => {
  const given = await completed(600)
  expect(await given.writeBack.runOnce()).toBe(0)
  expect(await given.writeBack.runOnce()).toBe(10_000)
  expect(await counts(given)).toEqual({ written: 600, due: 0 })
})

test('refused rows are tried with backoff, with the words of Postgres, and the others are written', async () => {
  const given = await completed(8)
  await trigger(given, [1, 4, 8], `raise exception 'period is closed'`)
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 5, due: 3 })
  const detail = 'SQLSTATE P0001: period is closed'
  expect(await problems(given)).toEqual(['1', '4', '8'].map((subject) => ({ kind: 'report_refused', subject, detail })))
  const refused = given.reported.filter(({ problem }) => problem !== null)
  expect(refused.map(({ againInMs, code }) => [againInMs, code])).toEqual(Array(3).fill([5_000, 'P0001']))

  await given.pool.query('drop trigger meddle on outbox')
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 5, due: 3 })
  await given.pool.query('update outboxd.submission set report_not_before = now()')
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 8, due: 0 })
  expect(await problems(given)).toEqual([])
})

test('a row that is refused again does not delay new rows', async () => {
  const given = await completed(2)
  await trigger(given, [1], `raise exception 'period is closed'`)
  await runUntilIdle(given)
  await given.pool.query('update outboxd.submission set report_not_before = now()')
  await given.pool.query(`update outbox set status = 'queued' where id = 2`)
  await given.pool.query(`update outboxd.submission set report_due = true where outbox_id = '2'`)
  await given.writeBack.runOnce()
  expect(await counts(given)).toEqual({ written: 1, due: 1 })
})

test.each([
  '40001',
  '25006',
  '53200',
  '57P01',
])('a trigger’s error is a refusal of the row, even with the code of a failing database (%s)', async (code) => {
  const given = await completed(5)
  await trigger(given, [2], `raise exception using errcode = '${code}', message = 'closed'`)
  await until(
    async () => {
      await given.writeBack.runOnce()
      return counts(given)
    },
    ({ written }) => written === 4,
  )
  expect(await problems(given)).toMatchObject([{ subject: '2', detail: `SQLSTATE ${code}: closed` }])
})

test('a state that a constraint refuses at the commit is neither written nor ticked off', async () => {
  const given = await completed(2)
  await given.pool.query(`create function refuse() returns trigger language plpgsql as $$
    begin if new.id = 1 then raise exception 'at the end' using errcode = '23514'; end if; return null; end $$;
    create constraint trigger refuse after update on outbox deferrable initially deferred for each row execute function refuse()`)
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 1, due: 1 })
  expect(await problems(given)).toMatchObject([{ kind: 'report_refused', detail: 'SQLSTATE 23514: at the end' }])
})

test('a row that a session of the ERP has locked does not delay the others, and is written when it is free', async () => {
  const given = await completed(3)
  const form = await given.connect()
  await form.query('begin; select from outbox where id = 2 for update')
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 2, due: 1 })
  await form.query('rollback')
  await given.pool.query('update outboxd.submission set report_not_before = now()')
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 3, due: 0 })
})

test('a record that takes a step meanwhile stays due, and its step does not wait', async () => {
  const given = await completed(2)
  const step = await given.connect()
  await step.query(`begin; update outboxd.submission set revision = revision + 1 where outbox_id = '1'`)
  await runUntilIdle(given)
  await step.query('commit')
  expect(await counts(given)).toEqual({ written: 2, due: 1 })
})

test.each([1, 2])('refused rows (%i) whose records others have locked are not tried again at once', async (rows) => {
  const given = await completed(rows)
  await trigger(given, [1, 2], `raise exception 'period is closed'`)
  const step = await given.connect()
  await step.query('begin; select from outboxd.submission for no key update')
  expect(await given.writeBack.runOnce()).toBe(10_000)
  await step.query('commit')
  await runUntilIdle(given)
  expect(await problems(given)).toHaveLength(rows)
})

test('a full round that ticks nothing off, because others have locked the records, is not repeated at once', async () => {
  const given = await completed(500)
  const step = await given.connect()
  await step.query('begin; select from outboxd.submission for no key update')
  expect(await given.writeBack.runOnce()).toBe(10_000)
})

test('a row that says discarded is written again, because the record may be replayed', async () => {
  const given = await completed(1)
  await given.pool.query(`update outbox set status = 'discarded'`)
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 1, due: 0 })
})

test('a row that is gone is a problem, and given up after a day of tries', async () => {
  const given = await completed(1)
  await given.pool.query('delete from outbox')
  await runUntilIdle(given)
  expect(await problems(given)).toMatchObject([{ kind: 'row_missing', subject: '1' }])
  await given.pool.query('update outboxd.submission set report_failures = 24, report_not_before = now()')
  await runUntilIdle(given)
  expect(await counts(given)).toEqual({ written: 0, due: 0 })
  expect(await problems(given)).toEqual([])
})

describe('only one instance writes back at a time', () => {
  test('so this one leaves the states alone while another one runs', async () => {
    const given = await completed(1)
    const other = await given.connect()
    await other.query(`begin; select pg_advisory_xact_lock(7166, 'outboxd.submission'::regclass::oid::int)`)
    expect(await given.writeBack.runOnce()).toBe(10_000)
    expect(await counts(given)).toEqual({ written: 0, due: 1 })
  })

  test('and reads the states after it has the lock', async () => {
    const given = await completed(1)
    const { writeBack } = writeBackOf(given, async () => {
      await given.pool.query(`update outboxd.submission set state = 'discarded', revision = revision + 1`)
    })
    await writeBack.runOnce()
    expect((await given.pool.query('select status from outbox')).rows).toEqual([{ status: 'discarded' }])
  })
})

describe('if no row can be written, the round fails, and no row is blamed:', () => {
  test.each([
    ['a column is gone', 'alter table outbox drop column error'],
    [
      'a trigger refuses each statement',
      `create function refuse() returns trigger language plpgsql as $$
       begin raise exception 'closed'; end $$;
       create trigger refuse before update on outbox for each statement execute function refuse()`,
    ],
  ])('%s', async (_, sql) => {
    const given = await completed(2)
    await given.pool.query(sql)
    await expect(given.writeBack.runOnce()).rejects.toThrow()
    expect(await counts(given)).toEqual({ written: 0, due: 2 })
    expect(await problems(given)).toEqual([])
  })

  test('the whole table is locked', async () => {
    const given = await completed(2)
    const form = await given.connect()
    await form.query('begin; lock table outbox in share mode')
    await expect(given.writeBack.runOnce()).rejects.toMatchObject({ code: '55P03' })
    expect(await problems(given)).toEqual([])
  })
})

describe('a written step', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  const gathering = () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    return writeBackOf({} as Setup)
  }

  test('starts a round after 200 ms, together with the steps that follow', () => {
    const { writeBack, wake } = gathering()
    writeBack.onWritten(['step'])
    vi.advanceTimersByTime(199)
    writeBack.onWritten(['another'])
    expect(wake).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(wake).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(1_000)
    expect(wake).toHaveBeenCalledTimes(1)
    writeBack.onWritten(['a third'])
    vi.advanceTimersByTime(200)
    expect(wake).toHaveBeenCalledTimes(2)
  })

  test('that is none starts no round', () => {
    const { writeBack, wake } = gathering()
    writeBack.onWritten([])
    vi.advanceTimersByTime(1_000)
    expect(wake).not.toHaveBeenCalled()
  })
})
