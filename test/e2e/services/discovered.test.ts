import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Asked, ask, customers } from '../../discover/ask.ts'
import { randomService } from '../../discover/randomService.ts'
import { mappingsDir } from '../../support/daemon.ts'
import { type NotShown, showsCode } from '../../support/serviceAlternatives.ts'
import { type Harness, setup } from '../faults/harness.ts'
import { type BatchSeen, type Outcomes, runBatch, usual } from './batch.ts'

/**
 * A service is drawn, `outboxd discover` is asked about it, and a batch goes through with what it says; and through the same service
 * without. `npm run discover:many` draws thirty; SEED=N begins with that one. The one of the suite refuses the mapped fields and knows
 * a key in another header.
 */

const from = Number(process.env.SEED ?? (process.env.SERVICES ? 1 : 78))
const seeds = Array.from({ length: Number(process.env.SERVICES ?? 1) }, (_, n) => from + n)
/** What a variable or the mapping follows from. */
const only = 'token-unit,mapped-fields,amount,idempotency,idempotency-header'

describe.each(seeds)('a batch through the service of seed %i', (seed) => {
  const { notShown, options } = randomService(seed)

  test('ends as docs/contract.md says, with what discover found', { timeout: 300_000 }, async () => {
    await using harness = await setup({ ...options, processingTime: 'constant:0.5' })
    const asked = await ask(harness.sandbox.url, { ...customers, only })
    await harness.control('DELETE', 'ledger?everything=true')
    using mappings = writeMappings(asked)
    const seen = await runBatch(harness, {}, { UNCERTAIN_POLICY: 'hold', ...asked.set, MAPPINGS_DIR: mappings.folder })
    expect(seen.outcomes).toEqual(withWhatIsFound(notShown))
    expectBreaches(seen, notShown)
    await eachIsThereOnce(harness)
  })

  test('and without it, where it needs something, fails as docs/contract.md says', { timeout: 300_000 }, async () => {
    await using harness = await setup({ ...options, processingTime: 'constant:0.5' })
    const seen = await runBatch(harness, {}, { UNCERTAIN_POLICY: 'hold' })
    expect(seen.outcomes).toEqual(withoutIt(notShown))
    expectBreaches(seen, notShown)
    await eachIsThereOnce(harness)
  })
})

/** The shipped mappings, changed as discover advises. */
function writeMappings({ findings }: Asked): Disposable & { folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'discovered-'))
  const [data, order] = ['data.yaml', 'order.yaml'].map((name) => readFileSync(join(mappingsDir, name), 'utf8'))
  const place = findings['mapped-fields']?.found ?? ''
  const amount = findings.amount?.found === 'text' ? asText : asItIs
  writeFileSync(join(folder, 'data.yaml'), inPlace(place, amount(data ?? '')))
  writeFileSync(join(folder, 'order.yaml'), order ?? '')
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
}

const asItIs = (mapping: string) => mapping
const asText = (mapping: string) => mapping.replace('type: "decimal(10,2)"', 'type: "decimal(10,2)", as: string')

function inPlace(place: string, mapping: string): string {
  const fields = /^ {4}(customer_id|order_date|total_amount): /gm
  if (place.startsWith('beside data')) return mapping.replace(fields, '  $1: ')
  if (place !== 'refused') return mapping
  // Nor may the mapping have fields that its body does not use.
  return mapping.replaceAll(
    /^ {4}(customer_id|order_date|total_amount): .*\n|^ {2}(order_date|total_amount): .*\n/gm,
    '',
  )
}

/** Of what arrived, nothing is there twice. */
async function eachIsThereOnce(harness: Harness): Promise<void> {
  const { rows } = (await harness.control('GET', 'counts')) as { rows: { effects: number }[] }
  const { rows: records } = await harness.pool.query<{ count: number }>('select count(*)::integer as count from outbox')
  const effects = rows.reduce((sum, row) => sum + Number(row.effects), 0)
  expect(effects).toBeLessThanOrEqual(records[0]?.count ?? 0)
}

function withWhatIsFound(service: NotShown): Outcomes {
  const { idempotency, errorShape, mappedFields, dateFractions } = service
  const lost = {
    ignore: 'uncertain, 1',
    replay: 'completed, 1',
    e002: showsCode(errorShape) ? 'uncertain E002, 1' : 'uncertain, 1',
  }[idempotency]
  const readsDates = mappedFields === 'data' || mappedFields === 'top'
  return { ...usual, ...inAnyCase(service), ...(readsDates && !dateFractions ? noFraction : {}), lost }
}

function withoutIt(service: NotShown): Outcomes {
  const { mappedFields, mappedFieldsRequired, amountForm, dateFractions } = service
  const readsDates = mappedFields === 'data' && !dateFractions
  const outcomes = { ...usual, ...inAnyCase(service), ...(readsDates ? noFraction : {}), lost: 'uncertain, 1' }
  const needsMapping =
    mappedFields === 'refused' ||
    (mappedFields === 'data' && amountForm === 'text') ||
    (mappedFields === 'top' && mappedFieldsRequired)
  return needsMapping ? { ...allRefused(service), order: outcomes.order } : outcomes
}

const noFraction = { fraction: 'rejected, 0' }

/** By its shape, whatever else it is; of the lost one nobody has heard that. */
function allRefused(service: NotShown): Outcomes {
  const refused = Object.fromEntries(Object.keys(usual).map((name) => [name, 'rejected, 0'])) as Outcomes
  const { emoji = refused.emoji } = inAnyCase(service)
  return { ...refused, emoji, lost: 'uncertain, 0' }
}

/** What no variable and no mapping changes. */
function inAnyCase(service: NotShown): Partial<Outcomes> {
  const {
    errorShape,
    customerIdUnit,
    invalidCustomerCode,
    errorCodeShown,
    orderLastStatus,
    e003Status,
    unknownIdStatus,
  } = service
  const isRead = showsCode(errorShape)
  const tooLong = isRead && invalidCustomerCode === 'E001' ? 'rejected E001, 0' : 'rejected, 0'
  return {
    ...(isRead ? {} : { unknown: 'rejected, 0' }),
    ...(errorCodeShown ? {} : { failing: 'failed, 1' }),
    ...(customerIdUnit === 'characters' ? {} : { emoji: tooLong }),
    ...(orderLastStatus === 'completed' ? {} : { order: 'accepted, 1' }),
    // Down, and nobody can read that it is.
    ...(isRead || e003Status !== 400 ? {} : { later: 'rejected, 0' }),
    // The question that is asked first after a pause looks as if something else answered it.
    ...(!isRead && unknownIdStatus === 200 && e003Status !== 400 ? { later: 'queued, 0' } : {}),
  }
}

const known = ['pending', 'accepted', 'completed']

/** Breaches are of words that the daemon does not know, and of tokens that do not say how long they last, alone. */
function expectBreaches({ breaches }: BatchSeen, service: NotShown): void {
  const { firstStatus, orderFirstStatus, orderLastStatus, expiresInForm } = service
  const words = [firstStatus, orderFirstStatus, orderLastStatus].some((word) => !known.includes(word))
  const may = [words ? 'unknown_status' : [], expiresInForm === 'absent' ? 'unreadable_answer' : []].flat()
  expect(Object.keys(breaches).filter((kind) => !may.includes(kind))).toEqual([])
}
