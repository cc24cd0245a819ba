import { expect, test } from 'vitest'
import { startForeignService } from '../../support/foreignService.ts'
import { setup } from '../faults/harness.ts'

test.each([201, 202])('a record whose %i has no body is polled under the id in Location', async (status) => {
  await using harness = await setup()
  await using service = await startForeignService({ bare: { status, location: true } })
  await harness.insert('located-')
  await harness.start({ SERVICE_BASE_URL: service.url, SERVICE_AUTH_URL: service.url })
  const { attempt, steps } = await harness.becomes('located-', 'completed')
  expect({ attempt, taken: service.counts.taken }).toEqual({ attempt: 1, taken: 1 })
  expect(steps).toContain('sending accepted')
})
