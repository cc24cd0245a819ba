import { basename } from 'node:path'
import { ConfigInvalid } from '../createVariableReader.ts'
import { BindingMismatch } from '../ledger/binding.ts'
import { allowedChangesByTable } from '../ledger/operator/grants.ts'
import { outboxFileName } from '../mapping/loadMappings.ts'
import { AddressUnusable } from '../observe/httpServer.ts'
import { redactAndCut } from '../observe/redact.ts'
import { SourceFailed } from '../outbox/contentQueries.ts'
import { OutboxTableUnusable } from '../outbox/readTableShape.ts'
import { DatabaseUnusable, isReadOnlyServerError, isTransientError, wasAnswerLost } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { FilesInvalid } from '../yaml/yamlDocument.ts'
import { FilesDiffer } from './ledgerFiles.ts'

/** `onlyLooks`: the command needs only what `migrate --print-grants ROLE --read-only` prints. */
interface GivenCommand {
  name: string
  onlyLooks: boolean
  mayChange: boolean
}

/** @param command names the rights needed; null for a page or a finding */
export function explainError(
  error: unknown,
  command: GivenCommand | null = null,
): { message: string; exitCode: 1 | 2 } {
  if (error instanceof ConfigInvalid) return { message: [error.message, ...error.problems].join('\n  '), exitCode: 2 }
  if (error instanceof FilesInvalid) {
    const isOutboxFile = error.problems.every(({ file }) => basename(file) === outboxFileName)
    const what = isOutboxFile ? outboxFileName : 'the mapping files'
    return { message: `${what} cannot be used\n  ${error.message.replaceAll('\n', '\n  ')}`, exitCode: 2 }
  }
  if (
    error instanceof FilesDiffer ||
    error instanceof AddressUnusable ||
    error instanceof BindingMismatch ||
    error instanceof OutboxTableUnusable
  )
    return { message: error.message, exitCode: 2 }
  if (error instanceof DatabaseUnusable && error.cause instanceof SourceFailed)
    return explainError(error.cause, command)
  if (command?.mayChange && wasAnswerLost(error))
    return { message: `${redactAndCut((error as Error).message)}. ${answerLostAdvice}`, exitCode: 1 }
  if (error instanceof DatabaseUnusable && isAway(error))
    return {
      message: `${redactAndCut(error.message)}. ${command?.name === 'run' ? stoppedDaemonAdvice : databaseAwayAdvice}`,
      exitCode: 1,
    }
  if (isReadOnlyServerError(error))
    return { message: `${redactAndCut((error as Error).message)}. ${readOnlyAdvice}`, exitCode: 1 }
  const refused = refusedRight(error)
  if (refused !== null) return { message: `${redactAndCut(refused)} ${neededRole(command, refused)}`, exitCode: 1 }
  return { message: redactAndCut(error instanceof Error ? error.message || error.name : String(error)), exitCode: 1 }
}

const isAway = (error: DatabaseUnusable) =>
  isTransientError(error) && /^(08|57P|E[A-Z]+$|undefined$)/.test(String(errorCodeOf(error.cause)))

const answerLostAdvice =
  'The database gave no answer, so this may have been done, or may still be done. Before you repeat it, look: `outboxd status` shows pauses and counts, `outboxd show ID` a record.'

const databaseAwayAdvice =
  'Check that its server runs and that the address is right. Running daemons go on by themselves when it answers again.'

const stoppedDaemonAdvice =
  'Check that its server runs and that the address is right. This daemon has stopped: start it again, unless systemd, Docker or Kubernetes does.'

const readOnlyAdvice =
  'This server takes no writes: it is a standby, or default_transaction_read_only is on. Set DATABASE_URL to the primary.'

function refusedRight(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  if (errorCodeOf(error) === '42501' || errorCodeOf(error.cause) === '42501') return `${error.message} (42501).`
  return null
}

function neededRole(command: GivenCommand | null, refused: string): string {
  if (command?.name === 'migrate')
    return 'Run `migrate` as the owner of the ledger’s schemas, or as a role that may create them.'
  const onlyLooks = command?.onlyLooks ?? false
  const grants = `\`outboxd migrate --print-grants ROLE${onlyLooks ? ' --read-only' : ''}\``
  if (command === null) return `The role needs what ${grants} prints.`
  const table = /permission denied for table (\w+)/.exec(refused)?.[1]
  const acts = allowedChangesByTable[`outboxd.${table}`]?.acts
  const right =
    onlyLooks || acts === undefined ? '' : ` On the ledger’s table ${table} that is select, ${acts.join(', ')}.`
  const does = onlyLooks ? 'only looks' : 'changes data, so a read-only role is not enough'
  return `\`${command.name}\` ${does}: its role needs what ${grants} prints.${right}`
}
