import { expect, onTestFinished, test } from 'vitest'
import { createCapturePart } from '../../../src/daemon/createCapturePart.ts'
import type { Mapping } from '../../../src/mapping/mapping.ts'
import { mappingFrom } from '../../mapping/mappingOf.ts'
import { contextOf, openInstance } from '../../support/daemonContext.ts'
import { openLedger } from '../../support/ledger.ts'

const mappingOf = (column: string) =>
  mappingFrom(`type: order
endpoint: orders
source: 'select 1 as id, 5 as ${column} where 1 = any($1)'
fields: { ${column}: { from: ${column}, type: integer } }
body: { ${column}: "\${${column}}" }`)

test('a reload during a round does not mix two versions of a mapping file in one record', async () => {
  const ledger = await openLedger()
  onTestFinished(() => ledger[Symbol.asyncDispose]())
  const databases = await openInstance(ledger.url)
  onTestFinished(() => databases.close())
  const after = new Map([['order', mappingOf('amount')]])
  let mappings: ReadonlyMap<string, Mapping> = new (class extends Map<string, Mapping> {
    /** Reloads right after the query was looked up. */
    override get(type: string) {
      mappings = after
      return super.get(type)
    }
  })([['order', mappingOf('total')]])
  const { runOnce } = createCapturePart({ ...contextOf(databases).context, mappings: () => mappings })
  const insert = () => ledger.pool.query(`insert into outbox (type, payload) values ('order', '{"id": 1}')`)
  await insert()
  await runOnce()
  expect(mappings).toBe(after)
  await insert()
  await runOnce()
  const { rows } = await ledger.pool.query('select body, error from outboxd.submission order by seq')
  expect(rows).toEqual([
    { body: '{"total":5}', error: null },
    { body: '{"amount":5}', error: null },
  ])
})
