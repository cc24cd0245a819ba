import { ForeignOutbox } from '../ledger/servedOutbox.ts'
import { AddressUnusable } from '../observe/httpServer.ts'
import { redact } from '../observe/redact.ts'
import { OutboxTableUnusable } from '../outbox/inspectTable.ts'
import { ConfigInvalid } from '../readVariables.ts'
import { FilesInvalid } from '../yaml/fileProblem.ts'

/** What an error means for the person who gave the command: a message, and the exit code (README.md, "Commands"). */
export function explain(error: unknown): { message: string; exitCode: 1 | 2 } {
  if (error instanceof ConfigInvalid) return { message: [error.message, ...error.problems].join('\n  '), exitCode: 2 }
  if (error instanceof FilesInvalid) {
    return { message: `the mapping files cannot be used\n  ${error.message.replaceAll('\n', '\n  ')}`, exitCode: 2 }
  }
  if (error instanceof AddressUnusable) return { message: error.message, exitCode: 2 }
  if (error instanceof ForeignOutbox || error instanceof OutboxTableUnusable)
    return { message: error.message, exitCode: 2 }
  return { message: redact(error instanceof Error ? error.message || error.name : String(error)), exitCode: 1 }
}
