import { expect, test } from 'vitest'
import { startDaemonProcess } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

const harness = openForFile(() => setup())

/** Inserts a record and waits until its request is on the wire. The service answers after `delayMs`. */
async function onTheWire(marker: string, delayMs: number): Promise<void> {
  await harness.fault({ kind: 'delay', delayMs, endpoint: 'submit', bodyContains: marker })
  await harness.insert(marker)
  await until(
    () => harness.outcome(marker),
    ({ state, posts }) => state === 'sending' && posts.length === 1,
  )
}

test('SIGTERM during a request: the answer is written, exit 0', async () => {
  await using daemon = await startDaemonProcess(harness.env)
  await onTheWire('sigterm-', 800)
  daemon.signal('SIGTERM')
  expect((await daemon.ended()).code).toBe(0)
  expect(await harness.outcome('sigterm-')).toMatchObject({ state: 'accepted', status: 'accepted', posts: [200] })
})

const answerMs = 20_000

test('a second SIGTERM: leaves at once, another instance settles', async () => {
  await using daemon = await startDaemonProcess(harness.env)
  await onTheWire('twice-', answerMs)
  const before = performance.now()
  daemon.signal('SIGTERM')
  daemon.signal('SIGTERM')
  await until(
    () => {
      daemon.signal('SIGTERM') // two signals sent at once may arrive as one
      return Promise.race([daemon.ended(), Promise.resolve('running')])
    },
    (how) => how !== 'running',
  )
  expect((await daemon.ended()).code).toBe(1)
  expect(performance.now() - before).toBeLessThan(answerMs) // it did not wait for the answer
  expect(await harness.outcome('twice-')).toMatchObject({ state: 'sending', posts: [200] })
})

test('after SIGSTOP past the request timeout, waiting answers are written', async () => {
  // Those that were killed had another timeout, which would count for a minute.
  await harness.pool.query('delete from outboxd.instance')
  await using daemon = await startDaemonProcess({ ...harness.env, REQUEST_TIMEOUT_SECONDS: '15' })
  const answered = [1, 2, 3].map((n) => `answered-${n}-`)
  const hanging = [1, 2, 3, 4, 5].map((n) => `hanging-${n}-`)
  await harness.fault({ kind: 'delay', delayMs: 7_500, endpoint: 'submit', bodyContains: 'answered-' })
  await harness.fault({ kind: 'delay', delayMs: 60_000, endpoint: 'submit', bodyContains: 'hanging-' })
  const markers = [...answered, ...hanging]
  await Promise.all(markers.map((marker) => harness.insert(marker)))
  await until(
    () => Promise.all(markers.map(harness.outcome)),
    (outcomes) => outcomes.every(({ state, posts }) => state === 'sending' && posts.length === 1),
  )
  daemon.signal('SIGSTOP')
  const beat = async () => {
    const { rows } = await harness.pool.query<{ ageS: number }>(
      `select extract(epoch from clock_timestamp() - max(beat_at))::float8 as "ageS" from outboxd.instance`,
    )
    return rows[0]?.ageS ?? 0
  }
  await until(beat, (ageS) => ageS > 18) // longer than REQUEST_TIMEOUT_SECONDS
  daemon.signal('SIGCONT')
  for (const marker of answered) expect(await harness.becomes(marker, 'completed')).toMatchObject({ effects: 1 })
  for (const marker of hanging) await harness.becomes(marker, 'uncertain')
  await harness.insert('awake-')
  await harness.becomes('awake-', 'completed')
  daemon.signal('SIGTERM')
  expect((await daemon.ended()).code).toBe(0)
})

test('SIGSTOP: `status` advises another daemon, which takes over, and names no beginning anew', async () => {
  await harness.pool.query('delete from outboxd.instance')
  await using sleeper = await startDaemonProcess(harness.env)
  const since = async () => /instance .*since (\S+ \S+)/.exec(await statusSays(harness.env))?.[1]
  const begun = await since()
  sleeper.signal('SIGSTOP')
  const said = await until(
    () => statusSays(harness.env),
    (text) => text.includes('no heartbeat'),
  )
  expect(said).toMatch(
    /^A daemon is connected, but has had no heartbeat for .*, so nothing is sent\. .*start another daemon, which takes over/,
  )
  await harness.insert('taken-over-')
  const started = performance.now()
  await using taker = await startDaemonProcess(harness.env)
  await harness.becomes('taken-over-', 'completed')
  expect(performance.now() - started).toBeLessThan(30_000)
  expect(await statusSays(harness.env)).not.toContain('no heartbeat')
  taker.signal('SIGTERM')
  expect((await taker.ended()).code).toBe(0)
  sleeper.signal('SIGCONT')
  await until(since, (time) => time !== undefined)
  expect(await since()).toBe(begun)
})

test('SIGSTOP until it counts as dead: uncertain, the late answer changes nothing', async () => {
  await using sleeper = await startDaemonProcess(harness.env)
  await onTheWire('sleeper-', 30_000) // longer than a busy machine needs to start the next daemon
  await using taker = await startDaemonProcess(harness.env)
  sleeper.signal('SIGSTOP')
  const before = await until(
    () => harness.outcome('sleeper-'),
    ({ state }) => state === 'uncertain',
  )
  const { rows } = await harness.pool.query<{ seconds: number }>(
    `select extract(epoch from max(e.at) - max(i.beat_at))::float8 as seconds from outboxd.submission_event e
     join outboxd.submission s on s.id = e.submission_id, outboxd.instance i
     where s.payload like '%sleeper-%' and i.id <> (select id from outboxd.instance order by beat_at desc limit 1)`,
  )
  expect(rows[0]?.seconds).toBeLessThan(8) // 5 to 6 s on a quiet machine
  sleeper.signal('SIGCONT')
  // The service's answer is waiting. The daemon exits only after it has written that answer or was refused.
  sleeper.signal('SIGTERM')
  const ended = await sleeper.ended()
  expect(ended.code).toBe(0)
  expect(`${ended.stdout}${ended.stderr}`).toContain('answer was not written')
  const after = await harness.outcome('sleeper-')
  expect(after).toMatchObject({ state: 'uncertain', posts: [200], effects: 1, steps: before.steps })
  taker.signal('SIGTERM')
  expect((await taker.ended()).code).toBe(0)
})
