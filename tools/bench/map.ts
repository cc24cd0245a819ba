import { readFileSync } from 'node:fs'
import { mapRecord } from '../../src/mapping/mapRecord.ts'
import { readMapping } from '../../src/mapping/readMapping.ts'
import { readOptions } from './harness/readOptions.ts'

readOptions(
  'bench:map: records mapped per second on one core, beside a function written by hand that reads the digits of numbers with the same JSON.parse reviver.',
  {},
)

const timesMax = 3
const roundMs = 1_000
const rounds = 5

const { mapping } = readMapping('data.yaml', readFileSync(new URL('../../mappings/data.yaml', import.meta.url), 'utf8'))
if (mapping === null) throw new Error('mappings/data.yaml has problems: node src/main.ts check names them')

const payloads = Array.from({ length: 1_000 }, (_, i) => {
  const amount = `${(i * 7919) % 100_000}.${String(i % 100).padStart(2, '0')}`
  const time = `2026-${String((i % 12) + 1).padStart(2, '0')}-20T23:54:00.${i}+01:00`
  return `{"customerId":"C${i}","orderDate":"${time}","amount":${amount},"field1":"value${(i % 3) + 1}","field2":"order ${i}"}`
})

/** Maps one type by code written by hand, with exact amounts. */
function mapByHand(payload: string): string {
  const record = JSON.parse(payload, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? JSON.rawJSON(source) : value,
  ) as Record<string, unknown>
  const { customerId, orderDate, amount, field1 = 'value1', field2 } = record
  if (typeof customerId !== 'string' || customerId === '' || customerId.length > 10) throw new Error('customerId')
  if (typeof orderDate !== 'string' || !/T.*(Z|[+-]\d\d:\d\d)$/.test(orderDate)) throw new Error('orderDate')
  if (!JSON.isRawJSON(amount)) throw new Error('amount')
  if (field1 !== 'value1' && field1 !== 'value2' && field1 !== 'value3') throw new Error('field1')
  if (typeof field2 !== 'string' || field2 === '') throw new Error('field2')
  const match = /^(-?\d{1,8})(?:\.(\d{1,2}))?$/.exec(amount.rawJSON)
  if (match === null) throw new Error('amount')
  return JSON.stringify({
    customerId,
    data: {
      field1,
      field2,
      customer_id: customerId,
      order_date: Temporal.Instant.from(orderDate).toString(),
      total_amount: JSON.rawJSON(`${match[1]}.${(match[2] ?? '').padEnd(2, '0')}`),
    },
  })
}

function mapByFile(payload: string): string {
  const mapped = mapping === null ? null : mapRecord(mapping, payload, '00000000-0000-4000-8000-000000000000')
  if (mapped?.kind !== 'mapped') throw new Error(`does not map: ${payload}`)
  return mapped.body
}

/** Returns records per second in one round. */
function measure(map: (payload: string) => string): number {
  const start = performance.now()
  let records = 0
  while (performance.now() - start < roundMs) {
    for (const payload of payloads) map(payload)
    records += payloads.length
  }
  return (records * 1_000) / (performance.now() - start)
}

for (const payload of payloads) {
  // Only trailing zeros of a fraction of a second may differ, because Temporal drops them.
  const [byFile, byHand] = [mapByFile, mapByHand].map((map) =>
    map(payload)
      .replace(/(\.\d*?)0+Z/, '$1Z')
      .replace('.Z', 'Z'),
  )
  if (byFile !== byHand) throw new Error(`not the same request:\n${byFile}\n${byHand}`)
}

measure(mapByHand)
measure(mapByFile)
// Alternates and takes the best of each, because other programs on the machine slow both down.
const results = Array.from({ length: rounds }, () => ({ hand: measure(mapByHand), file: measure(mapByFile) }))
const hand = Math.max(...results.map((result) => result.hand))
const file = Math.max(...results.map((result) => result.file))
const times = hand / file
console.log(`by hand           ${Math.round(hand).toLocaleString('en')} records/s`)
console.log(`by mapping file   ${Math.round(file).toLocaleString('en')} records/s`)
console.log(`${times.toFixed(2)} times the time of the hand-written function; at most ${timesMax} is the aim`)
process.exitCode = times <= timesMax ? 0 : 1
