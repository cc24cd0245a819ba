import { expect, test } from 'vitest'
import { budgetHtml, targetsHtml } from '../../../src/console/system/systemPage.ts'
import { openFixtureForFile } from '../../commands/fixture.ts'
import { openForFile } from '../../support/openForFile.ts'
import { until } from '../../support/until.ts'
import { openConsole } from '../openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

const query = (sql: string, values: unknown[] = []) => fixture.ledger.pool.query(sql, values)

/** The page once it contains `wanted`: some of its contents are some seconds old. */
const pageWith = (wanted: string) =>
  until(
    async () => (await served.get('/system')).text,
    (text) => text.includes(wanted),
  )

test('the page says which database, service and outbox these are, and what the ledger keeps', async () => {
  await query(
    `update outboxd.ledger set base_url = 'https://api.example.com', auth_url = 'https://api.example.com', client_hash = 'x',
       service_since = now(), service_by = 'x', table_name = 'public.outbox', id_column = 'id', table_by = 'x'`,
  )
  const { rows } = await query('select current_database() as name')
  const text = await pageWith('https://api.example.com')
  expect(text).toContain(`<bdi>${rows[0].name}</bdi>, PostgreSQL `)
  expect(text).toContain('<code>public.outbox</code>')
  expect(text).toContain('<code>outboxd.ledger</code>, since ')
  expect(text).toContain('<dt><code>RATE_LIMIT_REQUESTS</code></dt><dd><bdi>100</bdi></dd>')
})

test('a problem shows with its subject, and is escaped', async () => {
  await query(`insert into outboxd.problem (kind, subject, detail) values ('row_skipped', '4711', '<b>why</b>')`)
  const text = await pageWith('&lt;b&gt;why&lt;/b&gt;')
  expect(text).toContain('<bdi>4711</bdi>')
  await query('delete from outboxd.problem')
  await pageWith('No problem is open.')
})

test('the free budget shows, and the purpose of each request in the window', async () => {
  await fixture.ledger.capture([{ error: 'x' }])
  await query(
    `insert into outboxd.request (instance_id, purpose, over_at)
     select gen_random_uuid(), purpose, now() + (case when nth = 1 then 20 else 0 end) * interval '1 s'
     from unnest(array['submission', 'submission', 'submission', 'poll', 'poll', 'token', 'question', 'other_client', 'other_client'])
       with ordinality r(purpose, nth)`,
  )
  const text = await pageWith('91</strong> of <span class="number">100</span>')
  expect(text).toContain(
    '3 submissions, 2 polls, 1 for tokens, 1 trials and questions, 2 of other clients. Under way: 1.',
  )
})

test('a share below the target is marked in words, and without requests there is no share', () => {
  const none = { requests: 0, failed: 0, answered: 0, slow: 0 }
  const empty = { submit: none, status: none }
  const text = targetsHtml({
    last5Minutes: empty,
    lastHour: { submit: { requests: 100, failed: 2, answered: 100, slow: 0 }, status: none },
    lastDay: empty,
    last28Days: empty,
  }).toString()
  expect(text).toContain('98 % of 100 submissions and polls succeeded (below the target of 99 %)')
  expect(text).toContain('100 % of the answers came within 2 s (target 99 %)')
  expect(text.match(/no request for a record/g)).toHaveLength(2)
})

test('the budget shows what is free, and when a request becomes free again', () => {
  const budget = {
    ...{ limit: 100, windowMs: 60_000, free: 91, nextFreeMs: null },
    ...{ submissions: 3, polls: 2, tokens: 1, questions: 1, ofOtherClients: 2, underWay: 1 },
  }
  expect(budgetHtml(budget).toString()).toContain('<strong class="number">91</strong> of')
  expect(budgetHtml({ ...budget, free: 0, nextFreeMs: 400 }).toString()).toContain('free, the next within a second<')
  expect(budgetHtml({ ...budget, free: 0, nextFreeMs: 7_000 }).toString()).toContain('free, the next in 7 s<')
})
