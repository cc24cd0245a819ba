import { expect, type TestContext, test } from 'vitest'
import { standingProblemsSql } from '../../../src/ledger/problems.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** Other instances never put a living instance's records in doubt. The tests mostly wait, so they run concurrently. */

async function setting({ onTestFinished }: TestContext) {
  const harness = await setup()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  return {
    harness,
    start: harness.start,
    says: () => statusSays(harness.env),
    /** Opens a foreign session that holds a lock. @returns a function that releases the lock */
    async lock(sql: string): Promise<() => Promise<void>> {
      const client = await harness.pool.connect()
      let held = true
      await client.query(`begin; ${sql}`)
      const letGo = async () => {
        if (!held) return
        held = false
        await client.query('rollback')
        client.release()
      }
      onTestFinished(letGo)
      return letGo
    },
  }
}

test.concurrent("a foreign lock on a poll's job: only that record waits", async (context) => {
  const { harness, start, lock } = await setting(context)
  await harness.fault({ kind: 'delay', delayMs: 10_000, endpoint: 'status', times: 1 })
  await start()
  await harness.insert('held-')
  const job = `select from outboxd_jobs.job where state = 'active' and name = 'outboxd_poll'`
  await until(
    () => harness.pool.query(job),
    ({ rowCount }) => rowCount === 1,
  )
  const letGo = await lock(`${job} for update`)
  await until(
    () =>
      harness.pool.query(
        `select from pg_stat_activity where application_name = 'outboxd' and wait_event_type = 'Lock' and datname = current_database()`,
      ),
    ({ rowCount }) => rowCount !== 0,
  )
  const others = ['other-1-', 'other-2-', 'other-3-']
  for (const marker of others) await harness.insert(marker)
  for (const marker of others) await harness.becomes(marker, 'completed')
  expect(await harness.outcome('held-')).toMatchObject({ state: 'accepted' })
  await letGo()
  expect(await harness.becomes('held-', 'completed')).toMatchObject({ effects: 1 })
})

test.concurrent('a lock holds up an outcome: `loop_failing` says so', async (context) => {
  const { harness, start, lock, says } = await setting(context)
  await harness.fault({ kind: 'delay', delayMs: 10_000, endpoint: 'submit', bodyContains: 'locked-' })
  const daemon = await start()
  await harness.insert('locked-')
  await until(
    () => harness.outcome('locked-'),
    ({ state, posts }) => state === 'sending' && posts.length === 1,
  )
  const letGo = await lock(`select from outboxd.submission where state = 'sending' for update`)
  const told = await until(says, (text) => /outcomes of [0-9a-f]{8}/.test(text))
  expect(told).not.toContain('All is well')
  expect(told).toMatch(/1 outcome not written, the oldest \(of submission [0-9a-f-]{36}\) since .*lock timeout/s)
  expect(told).toContain('55P03')
  await until(
    () => scrape(daemon),
    (text) => text.includes('outboxd_problems{kind="loop_failing"} 1'),
  )
  await harness.insert('meanwhile-')
  await harness.becomes('meanwhile-', 'completed')
  await letGo()
  expect(await harness.becomes('locked-', 'completed', 'uncertain')).toMatchObject({ state: 'completed', posts: [200] })
  await until(says, (text) => text.startsWith('All is well'))
})

test.concurrent('a table lock cancels claims before their COMMIT: made again', async (context) => {
  const { harness, start, lock, says } = await setting(context)
  await start()
  await harness.insert('unlocked-')
  await harness.becomes('unlocked-', 'completed')
  const letGo = await lock('lock table outboxd.request in share mode')
  await harness.insert('behind-')
  const told = await until(says, (text) => /dispatch of [0-9a-f]{8}/.test(text))
  expect(told).toContain('lock timeout')
  // The problem is reported with each heartbeat. Waits until the backoff is longer than a COMMIT may go unanswered.
  const { rows } = await until(
    () =>
      harness.pool.query<{ kind: string }>(
        `select kind from ${standingProblemsSql} where kind = 'claim_lost'
           or (subject like 'dispatch of %' and seen_at - since > interval '12 s')`,
      ),
    ({ rowCount }) => rowCount !== 0,
    90_000,
  )
  expect(rows).toEqual([{ kind: 'loop_failing' }])
  await letGo()
  expect(await harness.becomes('behind-', 'completed')).toMatchObject({ effects: 1 })
})

test.concurrent('an instance cannot write its heartbeat: it claims nothing', async (context) => {
  const { harness, start, lock, says } = await setting(context)
  await start()
  await harness.insert('heard-')
  await harness.becomes('heard-', 'completed')
  const letGo = await lock('select from outboxd.instance for update')
  // Each try gives up after 1.5 s. Between two tries no session waits for the lock.
  await until(says, (text) => /has had no heartbeat for .*, so nothing is sent\. It waits for pid/.test(text))
  await harness.insert('unheard-')
  // By now other instances would consider this instance dead.
  await until(
    () => harness.pool.query(`select from outboxd.instance where beat_at > now() - interval '5 s'`),
    ({ rowCount }) => rowCount === 0,
  )
  const outcome = await until(
    () => harness.outcome('unheard-'),
    ({ state }) => state !== null,
  )
  expect(outcome).toMatchObject({ state: 'queued', attempt: 0, posts: [] })
  await letGo()
  expect(await harness.becomes('unheard-', 'completed', 'uncertain')).toMatchObject({
    state: 'completed',
    posts: [200],
  })
  await until(says, (text) => text.startsWith('All is well'))
})

test.concurrent('a loop fails again and again: `loop_failing`', async (context) => {
  const { harness, start } = await setting(context)
  const daemon = await start()
  await harness.insert('captured-')
  await harness.becomes('captured-', 'completed')
  await harness.pool.query('alter table outbox rename to outbox_away')
  let away = true
  const bringBack = async () => {
    if (away) await harness.pool.query('alter table outbox_away rename to outbox')
    away = false
  }
  context.onTestFinished(bringBack)
  const { rows } = await until(
    () =>
      harness.pool.query<{ subject: string; detail: string }>(
        `select subject, detail from ${standingProblemsSql} where kind = 'loop_failing' and subject like 'capture of %'`,
      ),
    ({ rowCount }) => rowCount === 1,
  )
  expect(rows[0]?.detail).toBe('relation "public.outbox" does not exist (42P01)')
  await bringBack()
  await until(
    () => harness.pool.query(`select from ${standingProblemsSql} where kind = 'loop_failing'`),
    ({ rowCount }) => rowCount === 0,
  )
  await until(
    () => scrape(daemon),
    (text) => text.includes('outboxd_problems{kind="loop_failing"} 0'),
  )
})
