import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { readStoreConfig } from '../../src/config.ts'
import { renderChange } from '../../src/console/change/changeHtml.ts'
import { chooseChange } from '../../src/console/change/chooseChange.ts'
import type { ReplayableSubmission } from '../../src/ledger/operator/replaySubmissions.ts'
import type { ListedSubmission } from '../../src/ledger/operator/selectSubmissions.ts'
import type { OperatorStore } from '../../src/store/operatorStore.ts'
import { payloadOf } from '../commands/fixture.ts'

const mappingsDir = join(import.meta.dirname, '..', '..', 'mappings')
const config = readStoreConfig({ DATABASE_URL: 'postgres://nowhere/', MAPPINGS_DIR: mappingsDir })

const rejected = (i: number): ListedSubmission => ({
  ...{ id: String(i), outboxId: String(i), type: 'data', key: null, state: 'rejected', code: 'E001', error: 'x' },
  ...{ mayHaveArrived: false, transactionId: null, idempotencyKey: '', attempts: 1, revision: 1 },
  ...{ recordedMs: 0, capturedMs: 0, sentMs: 0, acceptedMs: null, endedMs: 0, sinceMs: 0 },
})

/** A store with so many rejected records, of which every second does not map. */
function storeWith(count: number): OperatorStore {
  const payloads = [payloadOf(), payloadOf({ amount: '12.345' })]
  const store: Partial<OperatorStore> = {
    select: async (filter) => (filter.mayHaveArrived ? [] : Array.from({ length: count }, (_, i) => rejected(i))),
    readReplayable: async (seen) =>
      seen.map(
        ({ id, revision }): ReplayableSubmission => ({
          ...{ id, revision, outboxId: id, type: 'data', key: null, state: 'rejected', stamp: null, isServed: true },
          payload: payloads[Number(id) % 2] ?? null,
        }),
      ),
    readSnapshot: async () => ({ rateCapacity: 100 }) as Awaited<ReturnType<OperatorStore['readSnapshot']>>,
    readActivity: async () => ({ pollsPerRecord: 1 }) as Awaited<ReturnType<OperatorStore['readActivity']>>,
  }
  return store as OperatorStore
}

const noSearch = () => Promise.reject(new Error('nothing is searched for'))

async function previewOf(count: number) {
  const terms = { refresh: false, evenIfArrived: false, newKey: false }
  const request = { verb: 'replay', terms, ids: [], filters: { state: 'rejected' } } as const
  const chosen = await chooseChange(storeWith(count), noSearch, { config, clock: systemClock }, request)
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
  expect(page).toContain(
    '6 records of these, the last ones, were not mapped beforehand, and are counted as if they mapped',
  )
  expect(page).toContain('<p>It costs about 10012 requests')
  expect(page).toContain('<button class="main">Replay up to 5006 records</button>')
})
