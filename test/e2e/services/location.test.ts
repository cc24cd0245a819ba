import { expect, test } from 'vitest'
import { startForeignService } from '../../support/foreignService.ts'
import { setup } from '../faults/harness.ts'

test.each([201, 202])('a record whose %i has no body is polled under the id in Location', async (status) => {
  await using harness = await setup()
  await using service = await startForeignService({ bare: { status, location: true } })
  const markers = Array.from({ length: 8 }, (_, n) => `located-${n}-`) // more than the breaker's five
  for (const marker of markers) await harness.insert(marker)
  await harness.start({ SERVICE_BASE_URL: service.url, SERVICE_AUTH_URL: service.url })
  for (const marker of markers) expect((await harness.becomes(marker, 'completed')).attempt).toBe(1)
  expect(service.counts.taken).toBe(markers.length)
  expect(await harness.pauses()).toEqual([])
})
