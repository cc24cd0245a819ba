import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { resetColumnsByLifetimeSql, selectColumnsSql } from '../../src/ledger/submissions.ts'
import { type ColumnName, submissionColumns } from '../../src/model/submission.ts'
import { openLedger } from '../support/ledger.ts'
import { openForFile } from '../support/openForFile.ts'

const ledger = openForFile(openLedger)

const names = Object.keys(submissionColumns) as ColumnName[]
const types = { count: 'integer', flag: 'boolean', uuid: 'uuid', text: 'text', ms: 'bigint' }
const columnOf: Record<string, string> = { repeatedAfter401: 'repeated_after_401', notDoneMs: 'not_done_ms' }

describe('the table of submissionColumns', () => {
  test.each(
    names,
  )('%s is a column of the ledger with the right type, and nullable only if it holds a text or a time', async (name) => {
    const { rows } = await ledger.pool.query<{ type: string; nullable: boolean }>(
      `select a.atttypid::regtype::text as type, not a.attnotnull as nullable from pg_attribute a
       where a.attrelid = 'outboxd.submission'::regclass and a.attname = $1`,
      [columnOf[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)],
    )
    const { holds } = submissionColumns[name]
    expect(rows).toEqual([{ type: types[holds], nullable: holds === 'text' || holds === 'ms' }])
  })
})

describe('resetColumnsByLifetimeSql', () => {
  const used = `update outboxd.submission set server_errors = 2, answered_unavailable = true,
    polls = 3, opened_times = 1, opened_event = 0, unknown_since = now(), not_done_ms = 5, repeated_after_401 = true,
    done_ms = 9, error_code = 'E1', error = 'no', result = '{}', may_have_arrived = true, in_doubt = true,
    transaction_id = 'tx', state = 'failed', due_at = null, ended_at = now() where id = $1`

  async function rowAfter(lasting: 'step' | 'transaction' | 'start'): Promise<Record<string, unknown>> {
    const [id = ''] = await ledger.capture([{ id: randomUUID() }])
    await ledger.pool.query(used, [id])
    await ledger.pool.query(`update outboxd.submission set ${resetColumnsByLifetimeSql(lasting)} where id = $1`, [id])
    const { rows } = await ledger.pool.query(
      `select ${selectColumnsSql('s', names)}, s.opened_times, s.unknown_since
       from outboxd.submission s where s.id = $1`,
      [id],
    )
    return rows[0]
  }
  const step = { doneMs: null, errorCode: null, error: null, result: null, mayHaveArrived: false }
  const transaction = { polls: 0, fruitless: 0, notDoneMs: null, repeatedAfter401: false }
  const start = { serverErrors: 0, renewedKeys: 0, resubmissions: 0, answeredUnavailable: false }
  const kept = { inDoubt: true, transactionId: 'tx' }

  test('with `step` resets what belongs to a step', async () => {
    expect(await rowAfter('step')).toMatchObject({ ...kept, ...step, polls: 3, opened_times: 1, serverErrors: 2 })
  })

  test('with `transaction` also resets what its polls met, and how often it opened the breaker', async () => {
    const since = { opened_times: 0, unknown_since: null }
    expect(await rowAfter('transaction')).toMatchObject({ ...kept, ...step, ...transaction, ...since, serverErrors: 2 })
  })

  test('with `start` also resets what the attempts met, but never a doubt', async () => {
    expect(await rowAfter('start')).toMatchObject({ ...kept, ...step, ...transaction, ...start })
  })

  test('sets a given value instead of the default', () => {
    expect(resetColumnsByLifetimeSql('step', { error: "'taken back'" })).toContain(
      "error = 'taken back', result = null",
    )
  })
})
