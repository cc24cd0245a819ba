import { isDeepStrictEqual } from 'node:util'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { failureMessage } from '../observe/redact.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import { loadOutboxFile } from '../outbox/readOutboxFile.ts'

export type ReloadableFiles = ReturnType<typeof createReloadableFiles>

export interface ReloadableFilesDeps {
  onLoaded(mappings: Mappings, isOtherTable: boolean): void
  onBroken(error: unknown): void
  /**
   * Called if outbox.yaml does not fit the table. All former files stay in use, because mapping files name its columns.
   */
  onRefused(error: unknown): void
  /** @returns why the described table cannot be read; null if it can */
  tryTable(table: OutboxTable | null): Promise<Error | null>
}

interface Files {
  mappings: Mappings
  outboxTable: OutboxTable | null
}

/** @throws FilesInvalid with every problem */
export function createReloadableFiles(folder: string, deps: ReloadableFilesDeps) {
  const { onLoaded, onBroken, onRefused, tryTable } = deps
  const read = (): Files => ({ mappings: loadMappings(folder), outboxTable: loadOutboxFile(folder) })
  let inForce = read()
  let broken: string | null = null
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
    const refusal = isOtherTable ? await tryTable(files.outboxTable) : null
    if (refusal !== null) {
      broken = failureMessage(refusal)
      onRefused(refusal)
      return broken
    }
    inForce = files
    broken = null
    onLoaded(files.mappings, isOtherTable)
    return null
  }

  return {
    mappings: (): Mappings => inForce.mappings,
    outboxTable: (): OutboxTable | null => inForce.outboxTable,
    broken: (): string | null => broken,
    /** @returns why the files in the folder cannot be used; null on success */
    reload(): Promise<string | null> {
      underWay = underWay.then(reloadOnce, reloadOnce)
      return underWay
    },
  }
}
