import { describe, expect, test } from 'vitest'
import { interfaceGapSettings } from '../../../src/sandbox/interfaceGapSettings.ts'
import { openForFile } from '../../support/openForFile.ts'
import { alternatives, type NotShown } from '../../support/serviceAlternatives.ts'
import { setup } from '../faults/harness.ts'
import { type BatchSeen, type Outcomes, runBatch, usual } from './batch.ts'

/**
 * How the daemon handles each behaviour that the interface leaves open, as docs/why/contract.md describes it. Each test
 * changes one setting of the sandbox and sends a batch. LONG=1 tries all settings, the suite only some with different
 * outcomes.
 */

const harness = openForFile(() => setup({ processingTime: 'constant:0.3' }))

type Alternative = { [K in keyof NotShown]: { name: K; value: NotShown[K] } }[keyof NotShown]

interface Different {
  outcomes: Partial<Outcomes>
  /** Kinds of contract breaches. */
  breaches?: string[]
}

const all = (state: string): Outcomes => ({
  ...usual,
  ...Object.fromEntries(Object.keys(usual).map((name) => [name, state])),
})
const data = (state: string): Partial<Outcomes> => ({ ...all(state), order: usual.order })
/** The outcomes if no code can be read in the answer. */
const withoutCodes: Different = { outcomes: { unknown: 'rejected, 0', lost: 'uncertain, 1' } }

/** The unusual outcomes, by setting and value. */
const different: Record<string, Different> = {
  'expiresInForm absent': { outcomes: {}, breaches: ['unreadable_answer'] },
  'errorShape text': withoutCodes,
  'errorShape html': withoutCodes,
  'errorShape empty': withoutCodes,
  'customerIdUnit utf16': { outcomes: { emoji: 'rejected, 0' } },
  'customerIdUnit bytes': { outcomes: { emoji: 'rejected, 0' } },
  // These need a different mapping: docs/start/mapping.md.
  'mappedFields refused': { outcomes: data('rejected, 0') },
  'amountForm text': { outcomes: data('rejected, 0') },
  'dateFractions false': { outcomes: { fraction: 'rejected, 0' } },
  // With UNCERTAIN_POLICY=resend, the number of effects depends on whether the service recognises the key.
  'idempotency replay': { outcomes: { lost: 'completed, 1' } },
  'idempotency ignore': { outcomes: { lost: 'completed, 2' } },
  'idempotencyHeaders X-Idempotency-Key': { outcomes: { lost: 'completed, 2' } },
  'idempotencyHeaders X-Request-Id': { outcomes: { lost: 'completed, 2' } },
  // These refuse requests of the shipped mappings or the default form of key. Discover says what to set.
  'ownIds required': { outcomes: all('rejected, 0') },
  'field2Pattern ^[A-Za-z0-9]*$': { outcomes: data('rejected, 0') },
  'field2Pattern ^[A-Z]{3}-\\d{4}$': { outcomes: data('rejected, 0') },
  'idempotencyDemanded bare': { outcomes: all('rejected, 0') },
  'idempotencyDemanded uuid': { outcomes: all('rejected, 0') },
  'errorCodeShown false': { outcomes: { failing: 'failed, 1' } },
  'orderLastStatus shipped': { outcomes: { order: 'accepted, 1' }, breaches: ['unknown_status'] },
  'compression always': { outcomes: all('queued, 0'), breaches: ['unreadable_answer'] },
}

/** The settings that the suite tries. */
const short = ['errorShape html', 'idempotency replay', 'idempotency ignore']

const isUsual = ({ name, value }: Alternative) =>
  JSON.stringify(value) === JSON.stringify(interfaceGapSettings[name].parse(undefined))
const titled = (Object.keys(alternatives) as (keyof NotShown)[])
  .flatMap((name) => alternatives[name].map((value) => ({ name, value }) as Alternative))
  .filter((each) => !isUsual(each))
  .map((each) => [`${each.name} ${each.value}`, each] as const)

const tried = titled.filter(([title]) => process.env.LONG || short.includes(title))

describe('a batch through a service with one different setting', () => {
  test.each(tried)(
    '%s: each record has the expected outcome',
    { timeout: 300_000 },
    async (title: string, { name, value }) => {
      const seen: BatchSeen = await runBatch(harness, { [name]: value }, {}, title in different ? 15_000 : 60_000)
      expect(seen.outcomes).toEqual({ ...usual, ...different[title]?.outcomes })
      expect(Object.keys(seen.breaches)).toEqual(different[title]?.breaches ?? [])
    },
  )

  test('every expected difference is that of an existing setting', () => {
    const titles: string[] = titled.map(([title]) => title)
    expect([...Object.keys(different), ...short].filter((title) => !titles.includes(title))).toEqual([])
  })
})
