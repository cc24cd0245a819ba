import { expect, test } from 'vitest'
import { heartbeatSilenceMaxMs, isInstanceAliveSql, settingsValidMs } from '../../src/ledger/instances.ts'

test('an instance that has been silent for 12 s counts as dead, by whatever name a statement calls it', () => {
  expect(heartbeatSilenceMaxMs).toBe(12_000)
  expect(isInstanceAliveSql('me')).toBe(`me.beat_at > clock_timestamp() - interval '12000 milliseconds'`)
})

test('its settings hold for longer than it counts as alive: a limit is not raised by one lost connection', () => {
  expect(settingsValidMs).toBeGreaterThanOrEqual(5 * heartbeatSilenceMaxMs)
})
