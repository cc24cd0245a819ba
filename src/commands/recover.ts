import { findHistoryProblem } from '../ledger/history/history.ts'
import { findReadOnlyCause } from '../ledger/operator/readServer.ts'
import { readHistoryPause } from '../ledger/operator/recover.ts'
import { readOnlyMessage } from '../operations/databaseMessages.ts'
import type { Databases } from '../operations/databases.ts'
import { loadLedgerMappings } from '../operations/ledgerFiles.ts'
import { readReachMessage } from '../operations/pause.ts'
import { acceptLedgerAsComplete, pauseBeforeRecovery, type Recovery, recoverLedger } from '../operations/recover.ts'
import { escapeControl, pluralize } from '../plainText.ts'
import { formatInstant } from '../time.ts'
import { defineCommand } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { exitCodes, printJson } from './terminal/context.ts'
import { changeOptions, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'settle what may have been sent, after the database was restored or failed over, and resume sending',
  options: [
    ['--nothing-lost', 'change no record: nothing was sent that the ledger does not know'],
    reasonOption,
    ...changeOptions,
  ],
  help: `After a restore or a failover the ledger may not know what was sent. The daemons notice that and send nothing (paused: history)
until you run this command. docs/run/restore.md says what to do before and after it.

The command shows what it would do, and asks. Then it does all of it in one transaction:
  queued, being sent or uncertain                 uncertain, until you settle it with \`outboxd resolve\`
  waiting in the outbox, or marked there but      uncertain; rejected, and "may have arrived", if the row
    not in the ledger                               cannot be mapped
  accepted                                        polled on; uncertain if the service says E002 or E003
  failed, rejected, discarded                     unchanged, but "may have arrived": only replayed by id
A record whose row names a transaction that the ledger does not know is polled instead, unless it is completed or discarded, or
cannot be mapped.
Afterwards the whole limit counts as spent until no lost request can still arrive (about 100 s by default).

--nothing-lost only ends the pause. Use it after an upgrade or a move for which the daemons were stopped, and after a failover
that lost no commit. If something was lost, it is sent twice.

If the daemons cannot notice a restore, run the command all the same: it pauses them first.

Examples:
  outboxd recover --dry-run
  outboxd recover --reason "restored from last night's backup"
  outboxd recover --nothing-lost --reason "upgraded to PostgreSQL 18"`,
  async action(context, options): Promise<number> {
    return withOperator(context, options, [], async (databases, operator) => {
      const { dryRun = false, nothingLost = false, yes = false, json = false } = options
      const say = (sentence: string) => void context.stderr.write(`${escapeControl(sentence)}\n`)
      const cause = await findReadOnlyCause(databases.ledger)
      if (cause !== null) {
        say(`outboxd: ${readOnlyMessage(cause)}. Nothing was changed.`)
        return exitCodes.failed
      }
      const finding = await findLoss(databases)
      say(finding ?? 'No daemon has noticed a restore or a failover.')
      if (nothingLost) {
        if (json) printJson(context, { dryRun, nothingLost })
        if (dryRun) return exitCodes.done
        if (!yes && !(await askForConfirmation(context, nothingLostQuestion))) return exitCodes.unconfirmed
        await acceptLedgerAsComplete(operator)
        say('Sending resumes. No record was changed.')
        say(await readReachMessage(databases.ledger))
        return exitCodes.done
      }
      if (!dryRun) {
        // Before all that may fail, such as files that differ from those of the daemons.
        if (await pauseBeforeRecovery(operator)) say(pausedMessage)
        say(await readReachMessage(databases.ledger))
      }
      const parts = { databases, operator, mappings: await loadLedgerMappings(databases) }
      if (dryRun || !yes) {
        const preview = await recoverLedger(parts, true)
        if (dryRun && json) printJson(context, { dryRun, ...preview })
        else (dryRun ? context.stdout : context.stderr).write(lines(preview, 'would be'))
        if (dryRun) {
          say(finding === null ? afterUnnoticed : afterNoticed)
          return exitCodes.done
        }
        if (!(await askForConfirmation(context, 'Settle all of these, and resume sending?')))
          return exitCodes.unconfirmed
      }
      const done = await recoverLedger(parts, false)
      if (json) printJson(context, { dryRun, ...done })
      else context.stdout.write(lines(done, 'are'))
      say('Sending resumes when no lost request can still arrive: `outboxd status` says when a request is free.')
      return exitCodes.done
    })
  },
})

const pausedMessage =
  'All is paused, and stays so until you confirm `outboxd recover`, or give `outboxd recover --nothing-lost`.'

const afterUnnoticed =
  'Nothing was changed. Only if you know of a restore that daemons cannot notice, give `outboxd recover --reason TEXT`.'

const afterNoticed =
  'Nothing was changed. If nothing was lost (docs/run/restore.md, step 3), give `outboxd recover --nothing-lost`, otherwise `outboxd recover --reason TEXT`.'

const nothingLostQuestion = 'Resume sending as if nothing was lost? What was sent meanwhile would be sent twice.'

/** Says what was noticed of a restore or a failover; null if nothing was. */
async function findLoss({ ledger }: Databases): Promise<string | null> {
  const pause = await readHistoryPause(ledger)
  if (pause !== null) return `All is paused since ${formatInstant(pause.sinceMs)}: ${pause.detail}.`
  const problem = await findHistoryProblem(ledger)
  return problem === null ? null : `${problem}.`
}

function lines(
  { queued, sending, waiting, marked, unreadable, named, accepted, ended }: Recovery,
  verb: 'are' | 'would be',
): string {
  const counted = [
    [queued, `that waited in the ledger ${verb} uncertain`],
    [sending, `that were being sent ${verb} uncertain`],
    [waiting, `that waited in the outbox ${verb} uncertain, or rejected if they cannot be mapped`],
    [marked, `that the ledger had lost ${verb} uncertain, or rejected if they cannot be mapped`],
    [named, `whose rows name their transaction ${verb} polled`],
    [accepted, `that the service had accepted ${verb} polled on`],
    [ended, `already failed, rejected or discarded ${verb} noted as "may have arrived"`],
    [unreadable, `whose rows cannot be read ${verb} rejected, and "may have arrived"`],
  ] as const
  return counted.map(([count, what]) => (count === 0 ? '' : `${pluralize(count, 'record')} ${what}\n`)).join('')
}
