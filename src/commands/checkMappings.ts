import type { StoreConfig } from '../config.ts'
import { findBodyWarnings } from '../mapping/findBodyWarnings.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { explain } from '../operations/explainError.ts'
import type { Finding } from './finding.ts'

/** Reads the mapping files, and says of each what the service would mind in its requests. */
export function checkMappings({ mappingsDir }: StoreConfig): Finding[] {
  let mappings: Mapping[]
  try {
    mappings = [...loadMappings(mappingsDir).values()]
  } catch (error) {
    return [{ what: 'mappings', mark: 'problem', message: explain(error).message }]
  }
  const names = mappings.map(({ type, endpoint }) => `${type} to ${endpoint}`)
  return [
    { what: 'mappings', mark: 'ok', message: `${names.sort().join(', ')} (${mappingsDir})` },
    ...mappings.flatMap(warnOf),
  ]
}

function warnOf(mapping: Mapping): Finding[] {
  const warnings = findBodyWarnings(mapping)
  if (warnings.length === 0) return []
  return [{ what: `mapping of ${mapping.type}`, mark: 'warning', message: warnings.join('\n') }]
}
