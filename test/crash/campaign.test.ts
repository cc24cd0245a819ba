import { expect, onTestFinished, test } from 'vitest'
import { runCampaign } from './campaign.ts'
import { printResult } from './print.ts'

// `npm run crash` is the long form; docs/guarantee.md has its figures.
test('40 kills, stops and restarts of Postgres under a service that misbehaves break no guarantee', async () => {
  const ended = new AbortController()
  onTestFinished(() => ended.abort())
  const result = await runCampaign({
    kills: 40,
    seed: 4,
    sabotage: null,
    daemons: 5,
    pace: { killMs: 400, stopMs: 6_000, restartMs: 7_000, insertMs: 200 },
    say: () => {},
    signal: ended.signal,
  })
  expect(result.violations, printResult(result)).toEqual([])
  expect(result.havoc.kills).toBeGreaterThanOrEqual(40)
  expect(result.havoc.restarts).toBeGreaterThanOrEqual(1)
  expect(result.evidence.outbox.length).toBeGreaterThan(50)
}, 300_000)
