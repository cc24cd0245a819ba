import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach } from 'vitest'
import type { CapturedRecord } from '../../src/model/outbox.ts'
import type { GivenChange } from '../support/change.ts'
import { type TestContext, testContext } from '../support/context.ts'
import { claim, type Ledger, openLedger, outcomeBatch, setLimit, setSettings, transition } from '../support/ledger.ts'
import { openForFile } from '../support/openForFile.ts'

/** A ledger with submissions in any state, and contexts for the commands that work on it. */
export interface Fixture extends AsyncDisposable {
  readonly ledger: Ledger
  reset(): Promise<void>
  /** Captures a record and brings it to where `change` leaves it. @returns the submission's id */
  end(change: GivenChange, record?: Partial<CapturedRecord>): Promise<string>
  /** Writes a row into the outbox table and captures it. @returns its id there */
  row(payload: string, type?: string): Promise<string>
  context(input?: string | null, env?: Record<string, string>): TestContext
  /** Requests that count and have their answers. */
  answeredRequests(): Promise<number>
}

export const failedE003: GivenChange = { state: 'failed', errorCode: 'E003', error: 'the service was down' }
export const uncertain: GivenChange = { state: 'uncertain', errorCode: null, error: 'no answer; it may have arrived' }

const good = '{"customerId":"C1","orderDate":"2026-11-03T10:00:00+01:00","amount":12.30,"field2":"x"}'

/** A payload that mappings/data.yaml maps. The given fields replace its own. */
export function payloadOf(fields: Record<string, string> = {}): string {
  const own = [...good.slice(1, -1).matchAll(/"(\w+)":("[^"]*"|[\d.]+)/g)].map(([, name = '', json = '']) => [
    name,
    json,
  ])
  return `{${Object.entries({ ...Object.fromEntries(own), ...fields }).map(([name, json]) => `"${name}":${json}`)}}`
}

export async function openFixture(): Promise<Fixture> {
  const ledger = await openLedger()
  const work = ledger.dispatch()
  return {
    ledger,
    async reset() {
      await ledger.reset()
      await setLimit(ledger.pool, 100)
      await setSettings(ledger.pool, { RETENTION_DAYS: '90', RETENTION_PAYLOAD_DAYS: '30' })
    },
    async end(change, record = {}) {
      const [id = ''] = await ledger.capture([{ payload: payloadOf(), ...record }])
      if (change.state === 'queued' || record.error) return id
      const { submissions } = await claim(work, { submissions: 1 })
      const [sending] = submissions
      if (sending === undefined || sending.id !== id) throw new Error('something else was in front of it')
      await work.writeOutcomes(outcomeBatch({ transitions: [transition(sending, change)] }))
      // as if it had been sent a while ago, and written back
      await ledger.pool.query(
        `update outboxd.submission set report_due = false, sent_at = sent_at - interval '1 min' where id = $1`,
        [id],
      )
      return id
    },
    async row(payload, type = 'data') {
      const { rows } = await ledger.pool.query<{ id: string }>(
        'insert into outbox (type, payload) values ($1, $2) returning id::text',
        [type, payload],
      )
      return rows[0]?.id ?? ''
    },
    context: (input = null, env = {}) =>
      testContext({ DATABASE_URL: ledger.url, MAPPINGS_DIR: mappingsDir, ...env }, input),
    async answeredRequests() {
      const { rowCount } = await ledger.pool.query('select from outboxd.request where over_at < clock_timestamp()')
      return rowCount ?? 0
    },
    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  }
}

/** Opens a fixture for the tests of a file, which is empty before each of them. */
export function openFixtureForFile(): Fixture {
  const fixture = openForFile(openFixture)
  beforeEach(() => fixture.reset())
  return fixture
}

export const mappingsDir = join(import.meta.dirname, '..', '..', 'mappings')

/** The mapping file that the package brings. */
export const dataFile = readFileSync(join(mappingsDir, 'data.yaml'), 'utf8')

/** Creates a folder with these mapping files. */
export function mappingFiles(files: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), 'outboxd-mappings-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
  return dir
}
