import { readPublishedTypes } from '../../ledger/instances.ts'
import { loadMappings, type Mappings } from '../../mapping/loadMappings.ts'
import type { OutboxRecord } from '../../model.ts'
import { type Databases, withOutbox } from '../../operations/databases.ts'
import { explainError } from '../../operations/explainError.ts'
import { type MapPreview, previewWarnings } from '../../operations/mapRecords.ts'
import { readWaitingRows } from '../../outbox/readRows.ts'
import type { ConsoleParts } from '../parts.ts'

type MappingFiles = { kind: 'value'; mappings: Mappings } | { kind: 'invalid'; problem: string }

/** Reads the files each time, so that a correction shows at once. */
export function readMappingFiles({ config }: Pick<ConsoleParts, 'config'>): MappingFiles {
  try {
    return { kind: 'value', mappings: loadMappings(config.mappingsDir) }
  } catch (error) {
    return { kind: 'invalid', problem: explainError(error).message }
  }
}

export interface MappingForm {
  type: string
  payload: string
}

export type MappingResult =
  | { kind: 'mapped'; previews: MapPreview[]; warnings: string[]; outboxId: string | null }
  | { kind: 'refused'; problem: string }

export interface MappingView {
  dir: string
  files: MappingFiles
  /** Types whose files only the daemon or only this machine has; null if unknown. */
  differing: string[] | null
  waiting: { kind: 'value'; rows: OutboxRecord[] } | { kind: 'unreadable'; problem: string }
  form: MappingForm
  result: MappingResult | null
  isShown: boolean
}

const waitingShown = 20

export async function readMappingView(
  databases: Databases,
  parts: Pick<ConsoleParts, 'config'>,
): Promise<Omit<MappingView, 'form' | 'result' | 'isShown'>> {
  const files = readMappingFiles(parts)
  const [published, waiting] = await Promise.all([readPublishedTypes(databases.ledger), readWaiting(databases)])
  return { dir: parts.config.mappingsDir, files, differing: differingTypes(files, published), waiting }
}

async function readWaiting(databases: Databases): Promise<MappingView['waiting']> {
  try {
    return { kind: 'value', rows: await withOutbox(databases, (outbox) => readWaitingRows(outbox, waitingShown)) }
  } catch (error) {
    return { kind: 'unreadable', problem: explainError(error).message }
  }
}

function differingTypes(files: MappingFiles, published: readonly string[] | null): string[] | null {
  if (files.kind === 'invalid' || published === null || published.length === 0) return null
  const here = new Set(files.mappings.keys())
  return [...here.symmetricDifference(new Set(published))].sort()
}

export const toMappingResult = (
  mappings: Mappings,
  previews: MapPreview[],
  outboxId: string | null,
): MappingResult => ({
  kind: 'mapped',
  ...{ previews, outboxId, warnings: previewWarnings(mappings, previews) },
})
