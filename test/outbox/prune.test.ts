import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { readSettings } from '../../src/ledger/settings.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { states } from '../../src/model/submission.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { type PruneRoundResult, runPruneRound } from '../../src/outbox/prune.ts'
import { beginTransaction } from '../../src/postgres/database.ts'
import type { GivenChange } from '../support/change.ts'
import { claim, openLedgerForFile, outcomeBatch, setLimit, setSettings, transition } from '../support/ledger.ts'
import { completeAgo, endAgo, pruneAll, toSettings } from '../support/retention.ts'

const ledger = openLedgerForFile()
beforeEach(async () => {
  await setLimit(ledger.pool, 100)
  await setSettings(ledger.pool, toSettings(ninety))
})

const outbox = () => new Outbox(ledger.pool, 'outbox', 1_000, ledger.pool)
const ninety = { days: 90, payloadDays: null }

/** Captures and ends a record as the daemon does, `days` ago, written back to its row. */
async function ended(change: GivenChange, days: number): Promise<string> {
  const [id = ''] = await ledger.capture([{ payload: '{"iban":"DE1"}' }])
  const work = ledger.dispatch()
  const { submissions } = await claim(work, { submissions: 1 })
  const [sending] = submissions
  if (sending?.id !== id) throw new Error('something else was in front of it')
  await work.writeOutcomes(outcomeBatch({ transitions: [transition(sending, change)] }))
  await endAgo(ledger.pool, days, `id = '${id}'`)
  return id
}

let transactions = 0
const completed = (): GivenChange => ({
  state: 'completed',
  transactionId: `tx-${++transactions}`,
  result: '{"iban":"DE1"}',
})
const exists = async (id: string) => (await ledger.row(id)).id === id

describe('records', () => {
  test('completed and discarded records are deleted with their events after RETENTION_DAYS, and the counts follow', async () => {
    const gone = [await ended(completed(), 91), await ended({ state: 'failed', errorCode: 'E1', error: 'no' }, 91)]
    await ledger.pool.query(`update outboxd.submission set state = 'discarded' where state = 'failed'`)
    const young = await ended(completed(), 89)
    expect(await pruneAll(ledger.pool, ninety)).toEqual({ submissions: 2, emptied: 0, end: 'through' })
    for (const id of gone) expect([await exists(id), await ledger.events(id)]).toEqual([false, []])
    expect(await ledger.events(young)).toHaveLength(3)
    const { submissions } = await readLedgerSnapshot(ledger.pool)
    expect(submissions).toEqual({ ...Object.fromEntries(states.map((state) => [state, 0])), completed: 1 })
  })

  test('records that need attention, are under way, or were not written back are never deleted', async () => {
    const kept = [
      await ended({ state: 'failed', errorCode: 'E1', error: 'no' }, 4_000),
      await ended({ state: 'rejected', errorCode: 'E001', error: 'no' }, 4_000),
      await ended({ state: 'uncertain', errorCode: null, error: 'nobody knows' }, 4_000),
    ]
    const untold = await ended(completed(), 4_000)
    await ledger.pool.query('update outboxd.submission set report_due = true where id = $1', [untold])
    kept.push(untold, ...(await ledger.capture([{}])))
    expect(await pruneAll(ledger.pool, { days: 1, payloadDays: 1 })).toMatchObject({ submissions: 0, emptied: 0 })
    for (const id of kept) expect(await exists(id)).toBe(true)
  })

  test('RETENTION_DAYS=0 keeps all records, but RETENTION_PAYLOAD_DAYS may still empty their contents', async () => {
    const id = await ended(completed(), 4_000)
    expect(await pruneAll(ledger.pool, { days: null, payloadDays: null })).toMatchObject({ submissions: 0, emptied: 0 })
    expect(await pruneAll(ledger.pool, { days: null, payloadDays: 30 })).toMatchObject({ submissions: 0, emptied: 1 })
    expect(await exists(id)).toBe(true)
  })

  test('the database refuses to delete a live record or an event by hand', async () => {
    await ended({ state: 'uncertain', errorCode: null, error: 'nobody knows' }, 100)
    await expect(ledger.pool.query('delete from outboxd.submission')).rejects.toThrow(
      'only records that are completed or discarded',
    )
    await ended(completed(), 100)
    await expect(ledger.pool.query('delete from outboxd.submission_event')).rejects.toThrow('append-only')
  })
})

describe('contents', () => {
  test('payload, body, result and what a replay kept of them are emptied, and the rest stays', async () => {
    const id = await ended(completed(), 31)
    await ledger.pool.query(
      `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who, detail)
       values ($1, 'failed', 'queued', 1, 'replayed', 'operator', 'operator', '{"former":{"code":"E1","body":"{\\"iban\\":1}","payload":"x"}}')`,
      [id],
    )
    const before = await ledger.row(id)
    expect(await pruneAll(ledger.pool, { days: 90, payloadDays: 30 })).toMatchObject({ submissions: 0, emptied: 1 })
    const after = await ledger.row(id)
    expect(after).toEqual({ ...before, payload: null, body: null, result: null, emptied_at: expect.any(Date) })
    const { rows } = await ledger.pool.query('select detail from outboxd.submission_event where cause = $1', [
      'replayed',
    ])
    expect(rows).toEqual([{ detail: { former: { code: 'E1' } } }])
    expect(await pruneAll(ledger.pool, { days: 90, payloadDays: 30 })).toMatchObject({ emptied: 0 })
    await expect(
      ledger.pool.query(`update outboxd.submission_event set detail = '{"former":{"code":"E2"}}'`),
    ).rejects.toThrow('append-only')
  })

  test('stay if an operator named the transaction, because that can be taken back and the record sent again', async () => {
    const id = await ended(completed(), 31)
    await ledger.pool.query('update outboxd.submission set id_by_person = true where id = $1', [id])
    expect(await pruneAll(ledger.pool, { days: 90, payloadDays: 30 })).toMatchObject({ emptied: 0 })
  })
})

describe('beside other sessions', () => {
  /** A transaction of another session. */
  async function another() {
    const transaction = await beginTransaction(ledger.pool)
    onTestFinished(() => transaction[Symbol.asyncDispose]())
    return transaction
  }

  async function round(turn: 'try' | 'wait'): Promise<PruneRoundResult> {
    const settings = (await readSettings(ledger.pool)) ?? {}
    return runPruneRound(outbox(), { settings, turn, goOn: () => true, onProgress() {} })
  }

  test('a record that an operator has locked is left for the next round, and not waited for', async () => {
    const [id, other] = [await ended(completed(), 100), await ended(completed(), 100)]
    const operator = await another()
    await operator.db.query('select from outboxd.submission where id = $1 for update', [id])
    expect(await pruneAll(ledger.pool, ninety)).toMatchObject({ submissions: 1, end: 'through' })
    expect([await exists(id), await exists(other)]).toEqual([true, false])
    await operator.db.query(
      `update outboxd.submission set state = 'uncertain', revision = revision + 1 where id = $1`,
      [id],
    )
    await operator.commit()
    expect(await pruneAll(ledger.pool, ninety)).toMatchObject({ submissions: 0 })
    expect(await exists(id)).toBe(true)
  })

  test('a round does nothing while capture or another round holds its lock', async () => {
    const id = await ended(completed(), 100)
    for (const lock of [7165, 7161]) {
      const holder = await another()
      await holder.db.query(`select pg_advisory_xact_lock(${lock}, 'outboxd.submission'::regclass::oid::int)`)
      expect(await round('try')).toBe('elsewhere')
      await holder.commit()
    }
    expect(await exists(id)).toBe(true)
    expect(await round('try')).toBe('through')
    expect(await exists(id)).toBe(false)
  })

  test('a round ends when the ledger gets other settings, before it deletes what these keep', async () => {
    await ledger.capture(Array.from({ length: 120 }, () => ({})))
    await completeAgo(ledger.pool, 100)
    const end = await runPruneRound(outbox(), {
      settings: (await readSettings(ledger.pool)) ?? {},
      turn: 'wait',
      goOn: () => true,
      onProgress: () => void setSettings(ledger.pool, toSettings({ days: null, payloadDays: null })),
    })
    expect(end).toBe('elsewhere')
    expect((await ledger.countStates()).completed).toBeGreaterThan(0)
  })

  test('a round that is interrupted after a batch leaves the rest to the next', async () => {
    await ledger.capture(Array.from({ length: 120 }, () => ({})))
    await completeAgo(ledger.pool, 100)
    let isInterrupted = false
    const end = await runPruneRound(outbox(), {
      settings: (await readSettings(ledger.pool)) ?? {},
      turn: 'wait',
      goOn: () => !isInterrupted,
      onProgress: () => {
        isInterrupted = true
      },
    })
    const { completed = 0 } = await ledger.countStates()
    expect(end).toBe('begun')
    expect(completed).toBeGreaterThan(0)
    expect(await pruneAll(ledger.pool, ninety)).toMatchObject({ submissions: completed })
  })
})
