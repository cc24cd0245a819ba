import { beforeAll, describe, expect, test } from 'vitest'
import { searchSubmissionTexts, toLikePatterns } from '../../../src/ledger/operator/search.ts'
import {
  anySubmissionFilter,
  countSubmissions,
  filterParameters,
  findSubmissionsSql,
  listedColumnsSql,
  matchingSubmissionsSql,
  type SubmissionFilter,
} from '../../../src/ledger/operator/selectSubmissions.ts'
import { openLedger } from '../../support/ledger.ts'
import { openForFile } from '../../support/openForFile.ts'

/** Enough rows for the planner to avoid a sequential scan, as it does with a million. */
const many = 20_000

const ledger = openForFile(openLedger)
beforeAll(async () => {
  await ledger.pool.query(
    `insert into outboxd.submission (id, outbox_id, type, key, resource, payload, body, recorded_at, state, idempotency_key,
       transaction_id, ended_at)
     select gen_random_uuid(), n::text, 'data', 'k' || n, 'data', '{"customer":"C' || n || '"}', '{}', now(), 'completed',
       gen_random_uuid(), 'tx-' || n, now() - n * interval '1 s'
     from generate_series(1, $1) n`,
    [many],
  )
  await ledger.pool.query('analyze outboxd.submission')
})

async function planOf(sql: string, values: unknown[]): Promise<string> {
  const { rows } = await ledger.pool.query<{ 'QUERY PLAN': string }>(`explain ${sql}`, values)
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}

const uuid = '0199e3a1-7c2f-7000-8000-1d2f3a4b5c6d'

describe('among many records, an index finds them by', () => {
  test.each([
    ['the outbox row', findSubmissionsSql.outbox, '4711', 'submission_outbox_row'],
    ['the id or its beginning', findSubmissionsSql.range, [uuid, uuid], 'submission_pkey'],
    ['the last digits of the id', findSubmissionsSql.ending, '3a4b5c6d', 'submission_last_digits'],
    ['the idempotency key', findSubmissionsSql['idempotency-key'], uuid, 'submission_idempotency_key'],
    ['the transaction', findSubmissionsSql.transaction, 'tx-4711', 'submission_transaction'],
    ['the key', findSubmissionsSql.key, 'k4711', 'submission_key'],
  ])('%s', async (_, sql, value, index) => {
    const plan = await planOf(sql, [2, value])
    expect(plan).toContain(index)
    expect(plan).not.toContain('Seq Scan on submission')
  })

  test.each<[string, SubmissionFilter, string]>([
    ['--transaction', { ...anySubmissionFilter, transactionId: 'tx-4711' }, 'submission_transaction'],
    ['--key', { ...anySubmissionFilter, key: 'k4711' }, 'submission_key'],
    ['--state completed', { ...anySubmissionFilter, states: ['completed'] }, 'submission_state'],
    ['--state accepted', { ...anySubmissionFilter, states: ['accepted'] }, 'submission_state'],
    ['--code', { ...anySubmissionFilter, code: 'e001' }, 'submission_code'],
  ])('%s', async (_, filter, index) => {
    const plan = await planOf(matchingSubmissionsSql(listedColumnsSql, 'longest'), filterParameters(filter, 51))
    expect(plan).toContain(index)
    expect(plan).not.toContain('Seq Scan on submission')
  })
})

test('records are counted up to a bound', async () => {
  expect(await countSubmissions(ledger.pool, anySubmissionFilter, 100)).toBe(100)
  expect(await countSubmissions(ledger.pool, anySubmissionFilter, many + 1)).toBe(many)
})

describe('a search', () => {
  const search = (text: string, bounds = {}) =>
    searchSubmissionTexts(ledger.pool, anySubmissionFilter, text, { rowsMax: many, timeMaxMs: 60_000, ...bounds })

  test('finds a text in payloads, whatever the case', async () => {
    const { ids, lookedAt, isCut } = await search('customer":"c4711"')
    expect(ids).toHaveLength(1)
    expect([lookedAt, isCut]).toEqual([many, false])
  })

  test('ends after the given number of rows, newest first, and says so', async () => {
    expect(await search('"C600"', { rowsMax: 600 })).toMatchObject({
      ids: [expect.any(String)],
      lookedAt: 600,
      isCut: true,
    })
    expect(await search('"C601"', { rowsMax: 600 })).toMatchObject({ ids: [], lookedAt: 600, isCut: true })
  })

  test('ends after the given time, and says so', async () => {
    expect(await search('"C1"', { timeMaxMs: 0 })).toEqual({ ids: [], lookedAt: 0, isCut: true })
  })
})

test.each([
  ['100%_\\', ['%100\\%\\_\\\\%', '%100\\%\\_\\\\\\\\%']],
  ['say "hi"', ['%say "hi"%', '%say \\\\"hi\\\\"%']],
  ['Müller', ['%Müller%', '%M\\\\u00fcller%']],
])('%s is searched for as it stands and as JSON writes it', (text, patterns) => {
  expect(toLikePatterns(text)).toEqual(patterns)
})
