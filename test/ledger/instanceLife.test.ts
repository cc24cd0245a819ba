import { expect, test } from 'vitest'
import { heartbeatSilenceMaxMs, isInstanceAliveSql } from '../../src/ledger/instances.ts'

test('an instance that has been silent for 5 s counts as dead, whatever alias the statement uses', () => {
  expect(heartbeatSilenceMaxMs).toBe(5_000)
  expect(isInstanceAliveSql('me')).toBe(
    `(me.stopped_at is null and me.beat_at > clock_timestamp() - interval '5000 milliseconds')`,
  )
})
