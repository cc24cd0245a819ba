import { expect, onTestFinished, test } from 'vitest'
import { runCampaign } from '../../../tools/crash/campaign.ts'
import { printResult } from '../../../tools/crash/printReport.ts'

// `npm run crash` is the long form; tools/README.md has its figures.
test('kill -9, SIGSTOP, Postgres crashes, failovers, restores and service faults at once: the guarantee holds', async () => {
  const ended = new AbortController()
  onTestFinished(() => ended.abort())
  const result = await runCampaign({
    kills: 25,
    seed: 4,
    mutation: null,
    daemons: 5,
    rareMs: 14_000,
    postgresDir: null,
    isPooled: false,
    say: () => {},
    signal: ended.signal,
  })
  // If CI tries it once more and that passes, only this shows what was wrong.
  if (result.violations.length > 0) console.log(printResult(result))
  expect(result.violations, printResult(result)).toEqual([])
  const { struck } = result.nemesis
  expect(struck.get('kill -9')).toBeGreaterThanOrEqual(25)
  for (const [what, times] of struck) expect(times, what).toBeGreaterThanOrEqual(1)
  expect(result.history.outbox.length).toBeGreaterThan(50)
}, 900_000)
