import { beforeAll, expect, test } from 'vitest'
import { chartsHtml } from '../../../src/console/overview/charts.ts'
import { type MinuteOfLastHour, readLastHour } from '../../../src/ledger/lastHour.ts'
import { failedE003, openFixture } from '../../commands/fixture.ts'
import { openForFile } from '../../support/openForFile.ts'

const fixture = openForFile(openFixture)
beforeAll(async () => {
  await fixture.reset()
})

test('the last hour has 60 minutes with requests, ends and times from row to completed', async () => {
  const { pool } = fixture.ledger
  for (const s of [10, 20, 90])
    await pool.query(`update outboxd.submission set recorded_at = ended_at - $2 * interval '1 s' where id = $1`, [
      await fixture.end({ state: 'completed', polls: 1, doneMs: 10 }),
      s,
    ])
  await fixture.end(failedE003)
  await pool.query('update outboxd.submission set report_due = false')
  await pool.query(
    `insert into outboxd.request_count select date_trunc('minute', now()) - m * interval '1 min', kind, gen_random_uuid(), 3, 0, 3, 0
     from (values ('submit'), ('status')) k (kind), unnest(array[0, 1, 59, 61]) m`,
  )
  const minutes = await readLastHour(pool)
  expect(minutes).toHaveLength(60)
  const sum = (of: (minute: MinuteOfLastHour) => number) => minutes.reduce((all, minute) => all + of(minute), 0)
  expect(sum(({ polls }) => polls)).toBe(9)
  expect(sum(({ submissions }) => submissions)).toBeGreaterThanOrEqual(9)
  expect({ completed: sum((m) => m.completed), notCompleted: sum((m) => m.notCompleted) }).toEqual({
    completed: 3,
    notCompleted: 1,
  })
  const [timed] = minutes.filter(({ halfMs }) => halfMs !== null)
  expect(timed).toMatchObject({ halfMs: 20_000, mostMs: 90_000 })
})

test('each bar says its minute and its figures, and a minute without any has none', () => {
  const none = { submissions: 0, polls: 0, completed: 0, notCompleted: 0, halfMs: null, mostMs: null }
  const atMs = Date.parse('2026-11-03T10:20:00Z')
  const minutes = [
    { atMs, ...none },
    { atMs: atMs + 60_000, ...none, submissions: 40, polls: 20, completed: 5, halfMs: 9_000, mostMs: 83_000 },
  ]
  const page = chartsHtml(minutes, 100)?.toString() ?? ''
  expect(page.match(/<title>[^<]+/g)).toEqual([
    '<title>10:21Z: submissions 40, polls 20',
    '<title>10:21Z: completed 5, not completed 0',
    '<title>10:21Z: half 9 s, 95 % 1 min 23 s',
  ])
  // The limit is the highest figure, so that 60 requests reach three fifths of the height.
  const heights = [...page.matchAll(/height="([\d.]+)"/g)].map(([, height]) => Number(height))
  expect((heights[0] ?? 0) + (heights[1] ?? 0)).toBe(36)
})

test('nothing in the last hour draws no bar and fails at nothing', () => {
  expect(chartsHtml([], null)?.toString()).not.toContain('<rect')
})
