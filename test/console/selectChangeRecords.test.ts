import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { readStoreConfig } from '../../src/config.ts'
import { renderChange } from '../../src/console/change/changeHtml.ts'
import { selectChangeRecords } from '../../src/console/change/selectChangeRecords.ts'
import { type Databases, openDatabases } from '../../src/operations/databases.ts'
import { type Fixture, openFixture, payloadOf } from '../commands/fixture.ts'

const mappingsDir = join(import.meta.dirname, '..', '..', 'mappings')

let fixture: Fixture
let databases: Databases
const configOf = (url: string) => readStoreConfig({ DATABASE_URL: url, MAPPINGS_DIR: mappingsDir })
beforeAll(async () => {
  fixture = await openFixture()
  databases = await openDatabases(configOf(fixture.ledger.url), 'test@host', () => 'outbox')
})
afterAll(async () => {
  await databases[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
})
beforeEach(() => fixture.reset())

/** Has `count` rejected records, of which every second does not map. */
async function reject(count: number): Promise<void> {
  const payloads = [payloadOf(), payloadOf({ amount: '12.345' })]
  for (let done = 0; done < count; done += 1_000) {
    const size = Math.min(1_000, count - done)
    await fixture.ledger.capture(
      Array.from({ length: size }, (_, i) => ({ payload: payloads[i % 2] ?? '', error: 'x' })),
    )
  }
}

const noSearch = () => Promise.reject(new Error('nothing is searched for'))

async function previewOf(count: number) {
  await reject(count)
  const terms = { refresh: false, evenIfArrived: false, newKey: false }
  const request = { verb: 'replay', terms, ids: [], filters: { state: 'rejected' } } as const
  const parts = { config: databases.config, clock: systemClock }
  const chosen = await selectChangeRecords(databases, noSearch, parts, request)
  if (chosen.kind === 'refused') throw new Error(chosen.problems.join())
  const kept = { ...chosen.change, token: 't', owner: 'o', progress: { kind: 'previewed' } } as const
  return { ...chosen.change, page: renderChange(kept, viewer, 0) }
}

const viewer = { who: 'operator Ada', csrf: 'o', session: '', canChange: true, canSignOut: false }

test('a replay of thousands is tried before it is confirmed: the number is what would be done', async () => {
  const { submissions, skipped, page } = await previewOf(1_000)
  expect(submissions).toHaveLength(500)
  expect(Object.keys(skipped[0]?.submission ?? {})).toEqual(['id', 'outboxId']) // no payload is kept
  expect(page).toContain('This would replay 500 records<')
  expect(page).toContain('<p>It costs about 1000 requests')
  expect(page).toContain('<button class="main">Replay 500 records</button>')
  expect(page).toContain('<b>500 records</b>: ')
  expect(page).toContain(' and 480 more')
})

test('of more than ten thousand the rest is not tried, and the number is said to be the most that it can be', async () => {
  const { submissions, untried, page } = await previewOf(10_006)
  expect({ would: submissions.length, untried }).toEqual({ would: 5_006, untried: 6 })
  expect(page).toContain('This would replay up to 5006 records<')
  expect(page).toContain('The last 6 records were not mapped beforehand and are counted as if they mapped')
  expect(page).toContain('<p>It costs about 10012 requests')
  expect(page).toContain('<button class="main">Replay up to 5006 records</button>')
})
