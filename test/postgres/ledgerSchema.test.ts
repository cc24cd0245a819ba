import { describe, expect, test } from 'vitest'
import {
  createSchemaRenamer,
  ledgerSchemaPattern,
  sessionNameOf,
  withLedgerSchema,
} from '../../src/postgres/ledgerSchema.ts'

const url = 'postgres://erp:pw@/erp?host=/run/postgresql'

describe('createSchemaRenamer', () => {
  const rename = createSchemaRenamer(withLedgerSchema(url, 'partner2')) ?? ((sql: string) => sql)

  test.each([
    ['select from outboxd.submission s', 'select from partner2.submission s'],
    ['create schema outboxd;', 'create schema partner2;'],
    [`"outboxd"."migration"`, `"partner2"."migration"`],
    [`'outboxd.submission'::regclass`, `'partner2.submission'::regclass`],
    [`nspname in ('outboxd'::name, 'outboxd_jobs'::name)`, `nspname in ('partner2'::name, 'partner2_jobs'::name)`],
    ["setval('outboxd.submission_event_id_seq', 1)", "setval('partner2.submission_event_id_seq', 1)"],
    ["set_config('outboxd.search_path', $1, true)", "set_config('partner2.search_path', $1, true)"],
  ])('%s', (sql, renamed) => {
    expect(rename(sql)).toBe(renamed)
  })

  test.each([
    `select pg_notify('outboxd_outbox', '')`,
    `application_name like 'outboxd%'`,
    'alter table outbox add constraint outboxd_knows_status check (true)',
    'select outboxd_capture.captured()',
    'the role needs outboxd. It then',
    `o."outboxd" is null and target = 'outboxd' -- a column and a value of the ERP`,
    `actor in ('outboxd', 'operator')`,
    `note not like '%@outboxd.com%'`,
    'select from "outboxd"."outbox" o join outboxd.customer c using (id)',
    `select outboxd_jobs from outbox where note <> 'outboxd_jobs'`,
    'select from outboxd.requests, outboxd.ledger2',
  ])('leaves alone what is not the schema: %s', (sql) => {
    expect(rename(sql)).toBe(sql)
  })

  test('changes nothing for the default schema', () => {
    expect(withLedgerSchema(url, 'outboxd')).toBe(url)
    expect(createSchemaRenamer(url)).toBeNull()
  })
})

test('an address without parameters gets its first', () => {
  expect(withLedgerSchema('postgres://db/erp', 'b')).toBe('postgres://db/erp?ledger_schema=b')
})

test('a session says which ledger it belongs to, unless it is the default one', () => {
  expect(sessionNameOf(url, 'outboxd heartbeat')).toBe('outboxd heartbeat')
  expect(sessionNameOf(withLedgerSchema(url, 'b'), 'outboxd heartbeat')).toBe('outboxd heartbeat (b)')
})

test.each([
  '',
  '2a',
  'Partner',
  'a-b',
  'a.b',
  'a"b',
  'a'.repeat(42),
  'a_jobs',
  'outboxd_jobs',
])('%j cannot name a ledger', (name) => {
  expect(name).not.toMatch(ledgerSchemaPattern)
})
