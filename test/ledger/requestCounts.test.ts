import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { readRecentRequestCounts, tidyRequestCounts } from '../../src/ledger/requestCounts.ts'
import type { MadeRequest } from '../../src/model/service.ts'
import type { Transition } from '../../src/model/submission.ts'
import { claim, openLedgerForFile, outcomeBatch, setLimit, transition } from '../support/ledger.ts'

const ledger = openLedgerForFile()
beforeEach(() => setLimit(ledger.pool))

const none = { requests: 0, failed: 0, answered: 0, slow: 0 }
const made = (outcome: MadeRequest['outcome'], tookMs: number, kind: MadeRequest['kind'] = 'submit'): MadeRequest => ({
  kind,
  outcome,
  tookMs,
})

/** Steps of records on the wire, one for each request. */
async function stepsOf(...requests: MadeRequest[]): Promise<Transition[]> {
  await ledger.capture(requests.map(() => ({})))
  const { submissions } = await claim(ledger.dispatch(), { submissions: requests.length })
  return submissions.map((submission, i) => ({
    ...transition(submission, { state: 'completed', polls: 1 }),
    request: requests[i] ?? null,
  }))
}

test('an unserved request counts as failed and an answer after more than 2 s as slow, but a refusal as neither', async () => {
  const transitions = await stepsOf(
    made('ok', 2_000),
    made('ok', 2_001),
    made('rejected', 10),
    made('throttled', 10),
    made('unauthorized', 10),
    made('server_error', 10),
    made('unavailable', 10),
    made('timeout', 30_000),
    made('network', 30_000),
    made('ok', 10, 'status'),
  )
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions }))
  const counts = {
    submit: { requests: 9, failed: 4, answered: 8, slow: 2 },
    status: { requests: 1, failed: 0, answered: 1, slow: 0 },
  }
  expect(await readRecentRequestCounts(ledger.pool)).toEqual({
    last5Minutes: counts,
    lastHour: counts,
    lastDay: counts,
    last28Days: counts,
  })
})

test('an outcome that is written twice is counted once, and a step without a request is not counted', async () => {
  const instance = { id: randomUUID(), who: 'test' }
  const [step, unseen] = await stepsOf(made('ok', 10), made('ok', 10))
  if (!step || !unseen) throw new Error('two were claimed')
  const batch = outcomeBatch({ transitions: [step, { ...unseen, request: null }] })
  const work = ledger.dispatch({ instance })
  await work.writeOutcomes(batch)
  await work.writeOutcomes(batch)
  expect((await readRecentRequestCounts(ledger.pool)).lastHour.submit).toMatchObject({ requests: 1 })
  const [more] = await stepsOf(made('ok', 10))
  await work.writeOutcomes(outcomeBatch({ transitions: more ? [more] : [] }))
  expect((await readRecentRequestCounts(ledger.pool)).lastHour.submit).toMatchObject({ requests: 2 })
})

test('an open transaction of one instance does not stop others from counting requests', async () => {
  const [first, second] = await stepsOf(made('ok', 10), made('ok', 10))
  if (!first || !second) throw new Error('two were claimed')
  const slow = await ledger.pool.connect()
  try {
    await slow.query('begin')
    await slow.query(
      `insert into outboxd.request_count values (date_trunc('minute', clock_timestamp()), 'submit', $1, 1, 0, 1, 0)`,
      [randomUUID()],
    )
    await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [first] }))
  } finally {
    await slow.query('rollback')
    slow.release()
  }
  expect((await readRecentRequestCounts(ledger.pool)).lastHour.submit.requests).toBe(1)
})

test('the last hour, day and 28 days are counted, also after the minutes of an hour were added up', async () => {
  const ages = ['1 min', '2 hours', '25 hours', '50 hours', '50 hours 1 min', '10 days', '27 days', '29 days 1 hour']
  for (const instance of [randomUUID(), randomUUID()])
    await ledger.pool.query(
      `insert into outboxd.request_count
       select date_trunc('hour', now()) + interval '30 min' - age, 'status', $1, 10, 1, 10, 2
       from unnest($2::interval[]) age`,
      [instance, ages.slice(1)],
    )
  await ledger.pool.query(
    `insert into outboxd.request_count values (date_trunc('minute', now()), 'status', $1, 10, 1, 10, 2)`,
    [randomUUID()],
  )
  const tenOf = (times: number) => ({ requests: 10 * times, failed: times, answered: 10 * times, slow: 2 * times })
  const counted = {
    last5Minutes: { submit: none, status: tenOf(1) },
    lastHour: { submit: none, status: tenOf(1) },
    lastDay: { submit: none, status: tenOf(3) },
    last28Days: { submit: none, status: tenOf(13) },
  }
  expect(await readRecentRequestCounts(ledger.pool)).toEqual(counted)
  for (let times = 0; times < 2; times++) {
    await tidyRequestCounts(ledger.pool)
    expect(await readRecentRequestCounts(ledger.pool)).toEqual(counted)
    // Two instances, of the last two days by minute: 1 + 2 + 2. Then three hours.
    expect((await ledger.pool.query('select from outboxd.request_count')).rowCount).toBe(8)
  }
})

test('minutes that come after their hour was added up are added to it', async () => {
  const add = () =>
    ledger.pool.query(
      `insert into outboxd.request_count values (date_trunc('hour', now()) - interval '60 hours', 'submit', $1, 10, 1, 10, 2)`,
      [randomUUID()],
    )
  for (let times = 1; times <= 2; times++) {
    await add()
    await tidyRequestCounts(ledger.pool)
    const { last28Days } = await readRecentRequestCounts(ledger.pool)
    expect(last28Days.submit.requests).toBe(10 * times)
  }
  expect((await ledger.pool.query('select from outboxd.request_count')).rowCount).toBe(1)
})
