import { captureRowsNow } from '../ledger/capture.ts'
import { assertNoDataLost } from '../ledger/history/history.ts'
import { logOperatorAct } from '../ledger/operator/operator.ts'
import { lockSettings } from '../ledger/settings.ts'
import { withOutbox } from '../operations/databases.ts'
import { assertOutboxFileIsLedgers } from '../operations/ledgerFiles.ts'
import { surveyTable } from '../outbox/survey.ts'
import { pluralize } from '../plainText.ts'
import { inTransaction } from '../postgres/database.ts'
import { defineCommand } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { exitCodes, printJson } from './terminal/context.ts'
import { changeOptions, reasonOption, withOperator } from './terminal/operator.ts'

/** The daemon captures them one by one, and lists their ids in each claim. */
const rowsMax = 500

export const command = defineCommand({
  description: 'send rows that came too late behind the position of an append-only table',
  options: [reasonOption, ...changeOptions],
  help: `With "state: none" a table is read once, up to a position in its sequence. A row that appears behind it (rows_passed_over) is not
sent by itself. This lists up to ${rowsMax} such rows, and lets the daemon capture them. Run it again for more.

Examples:
  outboxd capture --dry-run
  outboxd capture --reason "partition of May attached"`,
  async action(context, options): Promise<number> {
    return withOperator(context, options, [], async (databases, operator) => {
      await assertNoDataLost(databases.ledger)
      await assertOutboxFileIsLedgers(databases)
      const goOn = () => !context.signal.aborted
      const { idsBehind } = await withOutbox(databases, (outbox) => surveyTable(outbox, goOn))
      const outboxIds = idsBehind.slice(0, rowsMax)
      if (options.json) printJson(context, { dryRun: options.dryRun ?? false, outboxIds })
      else context.stdout.write(outboxIds.map((id) => `outbox:${id}\n`).join(''))
      if (outboxIds.length === 0) {
        context.stderr.write('No row lies behind the position.\n')
        return exitCodes.nothing
      }
      if (options.dryRun) return exitCodes.done
      if (!options.yes && !(await askForConfirmation(context, `Send ${pluralize(outboxIds.length, 'row')}?`)))
        return exitCodes.unconfirmed
      await inTransaction(databases.ledger, async (db) => {
        await lockSettings(db)
        await assertOutboxFileIsLedgers(databases, db)
        await captureRowsNow(db, outboxIds)
        await logOperatorAct(db, operator.actor, 'capture', { rows: outboxIds.length })
      })
      context.stderr.write(`A daemon captures ${pluralize(outboxIds.length, 'row')}.\n`)
      return exitCodes.done
    })
  },
})
