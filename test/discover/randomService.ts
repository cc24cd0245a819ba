import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { interfaceGapSettings } from '../../src/sandbox/interfaceGapSettings.ts'
import type { SandboxOptions } from '../../src/sandbox/startSandbox.ts'
import { createSeededRandom, type SeededRandom } from '../../tools/crash/seededRandom.ts'
import { alternatives, type NotShown } from '../support/serviceAlternatives.ts'
import { customers, type DiscoverOptions } from './ask.ts'
import { field2Of, type ServiceSettings } from './truthOf.ts'

/** A service that a partner may have to do with. */
export interface RandomService {
  seed: number
  /** For `startSandbox`, beside a database and a port. */
  options: Partial<SandboxOptions>
  /** Those of `options` that the interface does not determine. */
  notShown: NotShown
  settings: ServiceSettings
  /** The body of a record that its partner would give discover, if the service refuses a plain one; else null. */
  record: string | null
}

/** How likely it is, for each setting, that a service has the sandbox's default. */
const usualShare = 0.4

/** Half of the interface's window, so that two counts to the limit take less time. A count of 100 with a gap fits into it. */
export const windowSeconds = 30

/** Draws a service. Each setting is drawn independently, unless two exclude each other. */
export function randomService(seed: number): RandomService {
  const notShown = consistent(drawn(createSeededRandom(seed, 'service')))
  const bodyLimitBytes = createSeededRandom(seed, 'body limit').pick([65_536, 262_144, 1_048_576])
  const limit = {
    rateLimitRequests: createSeededRandom(seed, 'limit').pick([100, 100, 60, 50]),
    rateLimitWindowSeconds: windowSeconds,
  }
  const options = { ...notShown, ...limit, bodyLimitBytes, processingTime: 'constant:2', seed }
  return { seed, options, notShown, settings: { ...notShown, ...limit }, record: recordFor(notShown) }
}

/** The options of discover for a service: `record` in a file, if the service has one. */
export function givenFor({ record }: RandomService): DiscoverOptions {
  if (record === null) return {}
  const file = join(mkdtempSync(join(tmpdir(), 'record-')), 'body.json')
  writeFileSync(file, record)
  return { record: [file] }
}

function recordFor(service: NotShown): string | null {
  const field2 = field2Of(service)
  if (field2 === null) return null
  const { customer } = customers
  const mapped = `"customer_id": "${customer}", "order_date": "2026-01-02T03:04:05Z", "total_amount": 12.30`
  return `{ "customerId": "${customer}", "data": { "field1": "value1", "field2": "${field2}", ${mapped} } }`
}

function drawn(random: SeededRandom): NotShown {
  const names = Object.keys(alternatives) as (keyof NotShown)[]
  return Object.fromEntries(
    names.map((name) => [
      name,
      random.chance(usualShare)
        ? interfaceGapSettings[name].parse(undefined)
        : random.pick<NotShown[keyof NotShown]>(alternatives[name]),
    ]),
  ) as NotShown
}

/** Avoids services that always compress, because discover could read none of their answers. */
function consistent(service: NotShown): NotShown {
  return service.compression === 'always' ? { ...service, compression: 'asked' } : service
}
