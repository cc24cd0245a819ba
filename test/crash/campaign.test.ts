import { expect, onTestFinished, test } from 'vitest'
import { runCampaign } from './campaign.ts'
import { printResult } from './print.ts'

// `npm run crash` is the long form; docs/guarantee.md has its figures.
test('25 kills, stops, restarts of Postgres, hanging COMMITs and steps of its clock, under a service and an ERP that misbehave, break no guarantee', async () => {
  const ended = new AbortController()
  onTestFinished(() => ended.abort())
  const result = await runCampaign({
    kills: 25,
    seed: 4,
    sabotage: null,
    daemons: 5,
    pace: {
      killMs: 400,
      stopMs: 6_000,
      restartMs: 7_000,
      insertMs: 200,
      erpMs: 2_000,
      hangMs: 15_000,
      clockMs: 10_000,
    },
    say: () => {},
    signal: ended.signal,
  })
  expect(result.violations, printResult(result)).toEqual([])
  expect(result.havoc.kills).toBeGreaterThanOrEqual(25)
  expect(result.havoc.restarts).toBeGreaterThanOrEqual(1)
  expect(result.havoc.erpFaults * result.havoc.hangs * result.havoc.clockSteps).toBeGreaterThanOrEqual(1)
  expect(result.evidence.outbox.length).toBeGreaterThan(50)
}, 300_000)
