import { expect, test } from 'vitest'
import { command as show } from '../../../src/commands/show.ts'
import { testContext } from '../../support/context.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** A transaction whose polls are refused does not stop other records. */

test.concurrent.for([503, 403])(
  'every poll of one transaction is refused (%i): it backs off alone, then stuck',
  { timeout: 120_000 },
  async (refusal, { onTestFinished }) => {
    const harness = await setup({ processingTime: 'constant:0.1' })
    onTestFinished(() => harness[Symbol.asyncDispose]())
    const daemon = await harness.start()
    const refuse = (of: object) => harness.fault({ kind: 'answer', status: refusal, endpoint: 'status', ...of })
    await harness.fault({ kind: 'answer', status: 500, endpoint: 'status', times: 3 })
    const outboxId = await harness.insert('refused-')
    const outcome = () =>
      harness.pool
        .query<{ id: string | null; times: number }>(
          'select transaction_id as id, coalesce((to_json(s) ->> $2)::int, 0) as times from outboxd.submission s where outbox_id = $1',
          [outboxId, 'refused_polls'],
        )
        .then(({ rows }) => rows[0])
    const known = await until(outcome, (row) => row?.id != null)
    await refuse({ pathContains: known?.id })
    await until(harness.pauses, (reasons) => reasons.length > 0)

    const markers = Array.from({ length: 30 }, (_, i) => `other-${i}-`)
    for (const marker of markers) await harness.insert(marker)
    await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))
    // Even on a slow machine, its refused polls paused all sending only a few times.
    const { rowCount: stops } = await harness.pool.query(
      `select from outboxd.submission_event where cause = 'paused' and to_state = 'accepted'`,
    )
    expect(stops).toBeLessThanOrEqual(8)
    await until(outcome, (row) => (row?.times ?? 0) >= 3)

    // Checks the messages meanwhile.
    await until(harness.pauses, (reasons) => reasons.length === 0)
    const shown = testContext(harness.env)
    await show.action(shown, `outbox:${outboxId}`, {})
    expect(shown.printed()).toMatch(/polls were refused while those of other records were answered/)
    expect(shown.printed()).toContain(String(refusal))
    expect(await statusSays(harness.env)).not.toContain('Nothing is sent')
    const metrics = () => scrape(daemon)
    await until(metrics, (text) => text.includes('outboxd_submissions{state="accepted"} 1'))

    await harness.control('DELETE', 'faults')
    await harness.becomes('refused-', 'completed')
  },
)

test.concurrent('every poll of the only transaction is refused: one pause, then it backs off alone', {
  timeout: 120_000,
}, async ({ onTestFinished }) => {
  const harness = await setup({ processingTime: 'constant:5' })
  onTestFinished(() => harness[Symbol.asyncDispose]())
  const daemon = await harness.start()
  const outboxId = await harness.insert('alone-')
  const read = () =>
    harness.pool
      .query<{ id: string | null; times: number }>(
        'select transaction_id as id, refused_polls as times from outboxd.submission where outbox_id = $1',
        [outboxId],
      )
      .then(({ rows }) => rows[0])
  const known = await until(read, (row) => row?.id != null)
  await harness.fault({ kind: 'answer', status: 503, endpoint: 'status', pathContains: known?.id })
  await until(read, (row) => (row?.times ?? 0) >= 3)
  const stops = () =>
    harness.pool
      .query(`select from outboxd.submission_event where cause = 'paused'`)
      .then(({ rowCount }) => rowCount ?? 0)
  expect(await stops()).toBeLessThanOrEqual(2) // the first refusal, and that of the trial

  // Checks the messages meanwhile.
  expect(await statusSays(harness.env)).toMatch(/^All is well: 1 being processed/)
  const metrics = () => scrape(daemon)
  await until(metrics, (text) => text.includes('outboxd_paused{reason="unavailable"} 0'))
  const shown = testContext(harness.env)
  await show.action(shown, `outbox:${outboxId}`, {})
  expect(shown.printed()).toMatch(/polls were refused while those of other records were answered/)

  await harness.control('DELETE', 'faults')
  await harness.becomes('alone-', 'completed')
})
