import { isDeepStrictEqual } from 'node:util'
import { tableUntried } from '../ledger/instances.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { failureMessage } from '../observe/redact.ts'
import { loadOutboxFile } from '../outbox/loadOutboxFile.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import type { TableTrial } from './databases.ts'

/** The mapping files and outbox.yaml: those in force, and how those in the folder are. */
export interface FilesInForce {
  mappings(): Mappings
  /** How the outbox table is read; null where no file says it. */
  outboxTable(): OutboxTable | null
  /** What keeps the files in the folder from being used; null where nothing does. */
  broken(): string | null
  /** Reads the folder again, and takes it into force, unless it is broken. One at a time. @returns what keeps it from that */
  reload(): Promise<string | null>
  /** Reads the folder, as the next start would, and changes nothing: `broken` tells what it found. */
  look(): void
  /** The outbox table cannot be read as the file says: what held before is in force again. @returns false where nothing did */
  refuseOutboxTable(error: unknown): boolean
}

export interface FilesInForceDeps {
  /** Told what a reload has taken into force, and whether that reads the outbox table in another way. */
  onLoaded(mappings: Mappings, isOtherTable: boolean): void
  /** Told why a reload has changed nothing. */
  onBroken(error: unknown): void
  /** Told why the outbox table is read as before. */
  onRefused(error: unknown): void
  /** Tries whether the outbox table can be read in another way. */
  tryTable(table: OutboxTable | null): Promise<TableTrial>
}

interface Files {
  mappings: Mappings
  outboxTable: OutboxTable | null
}

/** Reads the files of a folder. @throws FilesInvalid with everything that is wrong */
export function readFilesInForce(folder: string, deps: FilesInForceDeps): FilesInForce {
  const { onLoaded, onBroken, onRefused, tryTable } = deps
  const read = (): Files => ({ mappings: loadMappings(folder), outboxTable: loadOutboxFile(folder) })
  let inForce = read()
  let before: Files | null = null
  let broken: string | null = null
  /** It can be read, and the table is not so. */
  let refused: { outboxTable: OutboxTable | null; why: string } | null = null

  let underWay: Promise<string | null> = Promise.resolve(null)

  async function reloadOnce(): Promise<string | null> {
    let files: Files
    try {
      files = read()
    } catch (error) {
      broken = failureMessage(error)
      onBroken(error)
      return broken
    }
    const isOtherTable = !isDeepStrictEqual(files.outboxTable, inForce.outboxTable)
    const trial: TableTrial = isOtherTable ? await tryTable(files.outboxTable) : { kind: 'fits' }
    if (trial.kind === 'refused') {
      inForce = { ...files, outboxTable: inForce.outboxTable }
      onLoaded(files.mappings, false)
      return refuse(files.outboxTable, trial.error)
    }
    if (isOtherTable) before = inForce
    inForce = files
    broken = null
    refused = null
    onLoaded(files.mappings, isOtherTable)
    return trial.kind === 'unknown' ? tableUntried : null
  }

  function refuse(outboxTable: OutboxTable | null, error: unknown): string {
    const why = failureMessage(error)
    broken = why
    refused = { outboxTable, why }
    onRefused(error)
    return why
  }

  return {
    mappings: () => inForce.mappings,
    outboxTable: () => inForce.outboxTable,
    broken: () => broken,
    reload() {
      underWay = underWay.then(reloadOnce)
      return underWay
    },
    look() {
      try {
        const { outboxTable } = read()
        broken = refused !== null && isDeepStrictEqual(outboxTable, refused.outboxTable) ? refused.why : null
      } catch (error) {
        broken = failureMessage(error)
      }
    },
    refuseOutboxTable(error) {
      if (before === null) return false
      refuse(inForce.outboxTable, error)
      inForce = { ...inForce, outboxTable: before.outboxTable }
      before = null
      return true
    },
  }
}
