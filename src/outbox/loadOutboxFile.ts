import { readFileSync } from 'node:fs'
import path from 'node:path'
import { FilesInvalid } from '../yaml/yamlDocument.ts'
import type { OutboxTable } from './outboxTable.ts'
import { readOutboxFile } from './readOutboxFile.ts'

/**
 * Reads `outbox.yaml` of the folder of mappings: how an existing outbox table is to be read.
 *
 * @returns null where there is no such file
 * @throws FilesInvalid with everything that is wrong with it, by line and column
 */
export function loadOutboxFile(dir: string): OutboxTable | null {
  const file = path.join(dir, 'outbox.yaml')
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message
    throw new FilesInvalid([{ file, line: 1, column: 1, message: `the file cannot be read: ${reason}` }])
  }
  const { table, problems } = readOutboxFile(file, text)
  if (table === null) throw new FilesInvalid(problems)
  return table
}
