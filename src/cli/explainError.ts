import { ForeignOutbox } from '../ledger/servedOutbox.ts'
import { ForeignService } from '../ledger/servedService.ts'
import { AddressUnusable } from '../observe/httpServer.ts'
import { redact } from '../observe/redact.ts'
import { OutboxTableUnusable } from '../outbox/inspectTable.ts'
import { ConfigInvalid } from '../readVariables.ts'
import { TableLocked } from '../store/inspectDatabase.ts'
import { FilesInvalid } from '../yaml/fileProblem.ts'
import { endMessage, sessionsMessage } from './lockMessage.ts'

/** What an error means for the person who gave the command: a message, and the exit code (README.md, "Commands"). */
export function explain(error: unknown): { message: string; exitCode: 1 | 2 } {
  if (error instanceof ConfigInvalid) return { message: [error.message, ...error.problems].join('\n  '), exitCode: 2 }
  if (error instanceof FilesInvalid) {
    return { message: `the mapping files cannot be used\n  ${error.message.replaceAll('\n', '\n  ')}`, exitCode: 2 }
  }
  if (error instanceof AddressUnusable) return { message: error.message, exitCode: 2 }
  if (error instanceof ForeignOutbox || error instanceof ForeignService || error instanceof OutboxTableUnusable)
    return { message: error.message, exitCode: 2 }
  if (error instanceof TableLocked) {
    const { holders } = error
    const message = `the outbox’s table is locked by ${sessionsMessage(holders)}, so we could not look at it${endMessage(holders, 'the ERP’s')}`
    return { message, exitCode: 1 }
  }
  return { message: redact(error instanceof Error ? error.message || error.name : String(error)), exitCode: 1 }
}
