import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { openBreaker } from '../../support/breaker.ts'
import { startDaemonProcess } from '../../support/daemon.ts'
import { readMetric, scrape } from '../../support/scrape.ts'
import { setClockBack } from '../../support/setClock.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

const hour = 3_600_000

test("the database's clock is set back an hour: all is completed", async () => {
  await using harness = await setup({ processingTime: 'constant:1' })
  await harness.start({ RATE_LIMIT_REQUESTS: '8', RATE_LIMIT_WINDOW_SECONDS: '2' })
  const markers = Array.from({ length: 10 }, (_, n) => `clock${n}-`)
  for (const marker of markers) await harness.insert(marker)
  // Some records are tracked, some wait, and the budget is spent.
  await until(
    () => harness.outcome('clock0-'),
    ({ state }) => state === 'accepted',
  )
  await openBreaker(harness.pool, { cause: 'throttled', forMs: 1_000 })
  await setClockBack(harness.pool, hour)
  await harness.insert('afterwards-')
  for (const marker of [...markers, 'afterwards-'])
    expect(
      await until(
        () => harness.outcome(marker),
        ({ status }) => status === 'completed',
      ),
    ).toMatchObject({ effects: 1 })
})

test("a host's clock is an hour behind: ages stay right", async () => {
  await using harness = await setup()
  await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'so that it waits')`)
  await harness.insert('waits-')
  const daemon = await harness.start({}, { ...systemClock, nowMs: () => Date.now() - hour })
  const age = await until(
    () => readMetric(daemon, 'outboxd_oldest_unsent_age_seconds'),
    (seconds) => seconds > 0,
  )
  expect(age).toBeLessThan(60)
  await until(
    () => scrape(daemon),
    (text) => /outboxd_problems\{kind="clock_off"\} 1/.test(text),
  )
  const loop = (metric: string) => readMetric(daemon, `outboxd_loop_last_success_${metric}_seconds{loop="heartbeat"}`)
  expect(Date.now() / 1000 - (await loop('timestamp'))).toBeGreaterThan(3_500)
  expect(await loop('age')).toBeLessThan(60)
})

test('the clock is set back while an outcome waits: same wait', async () => {
  await using harness = await setup()
  await harness.pool.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'closed'; end $$;
    create trigger refuse before update of status on outbox for each row when (new.status = 'completed') execute function refuse()`)
  await harness.start()
  await harness.insert('put-off-')
  await until(
    () => harness.pool.query(`select from outboxd.problem where kind = 'report_refused'`),
    ({ rowCount }) => rowCount === 1,
  )
  await setClockBack(harness.pool, hour)
  await harness.pool.query('drop trigger refuse on outbox')
  expect(
    await until(
      () => harness.outcome('put-off-'),
      ({ status }) => status === 'completed',
    ),
  ).toMatchObject({ effects: 1 })
})

const clockSetBack = `data:text/javascript,${encodeURIComponent(`
  const real = Date
  let setBackMs = 0
  globalThis.Date = class extends real {
    constructor(...given) {
      given.length === 0 ? super(real.now() - setBackMs) : super(...given)
    }
    static now() {
      return real.now() - setBackMs
    }
  }
  process.on('SIGUSR2', () => {
    setBackMs = 3_600_000
    console.log('set back')
  })`)}`

test("the host's clock is set back an hour: a row without NOTIFY is captured, not an hour later", async () => {
  await using harness = await setup()
  await harness.pool.query('alter table outbox disable trigger user')
  await using daemon = await startDaemonProcess(harness.env, { flags: ['--import', clockSetBack] })
  daemon.signal('SIGUSR2')
  await daemon.line((line) => line === 'set back')
  for (const marker of ['set-back-1-', 'set-back-2-']) {
    await harness.insert(marker)
    await harness.becomes(marker, 'completed')
  }
})
