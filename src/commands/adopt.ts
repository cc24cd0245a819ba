import { readConfig } from '../config.ts'
import { describeOutboxIdentity, isSameOutbox, readServedOutbox } from '../ledger/binding.ts'
import { adopt, readServiceChange, type ServiceChange } from '../ledger/operator/adopt.ts'
import { withOutbox } from '../operations/databases.ts'
import { pluralize } from '../plainText.ts'
import { defineCommand } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { changeOptions, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'say that the same outbox table or service has a new name',
  options: [
    ['--same', 'the table was renamed or its sequence altered, or the service has a new address or client id'],
    reasonOption,
    ...changeOptions,
  ],
  help: `A ledger serves one outbox table and one service, for life. If the configuration names others, no daemon starts. If they are the
same under a new name, run this with --same; for a new address or client id of the service, stop all daemons first. Another table
or service needs a ledger of its own: name it in LEDGER_SCHEMA.

Example:
  outboxd adopt --same    OUTBOX_TABLE was renamed, or SERVICE_BASE_URL has changed`,
  async action(context, options): Promise<number> {
    const problems = options.same ? [] : ['give --same if table and service are those that the ledger knows']
    return withOperator(context, options, problems, async (databases, operator) => {
      // Without a configured service, the ledger keeps its own.
      const service = context.env.SERVICE_BASE_URL === undefined ? null : readConfig(context.env).service
      const { identity } = await readServedOutbox(databases.ledger)
      const { identity: table, shape } = await withOutbox(databases, (outbox) => outbox.inspect())
      const change = service && (await readServiceChange(databases.ledger, service))
      const formerId = identity?.idColumn ?? table.idColumn
      if (formerId !== table.idColumn && shape.columns.has(formerId))
        return printUsageErrors(context, [
          `the ledger knows rows by the column ${formerId}, which the table still has. By ${table.idColumn} all of them would be sent again: name ${formerId} as "id"`,
        ])
      const toService = service === null ? '' : ` and the service ${service.baseUrl}`
      context.stderr.write(`The ledger will belong to the outbox ${describeOutboxIdentity(table)}${toService}.\n`)
      if ((identity !== null && !isSameOutbox(identity, table)) || change?.served)
        context.stderr.write('They are those that the ledger knows, under new names.\n')
      if (!options.yes && !options.dryRun && !(await askForConfirmation(context, 'Is that right?')))
        return exitCodes.unconfirmed
      const refused = options.dryRun ? change : await adopt(operator, { table, service })
      if (options.json) printJson(context, { dryRun: options.dryRun ?? false, table, service: change })
      if (refused !== null && refused.daemons.length > 0) {
        context.stderr.write(`${daemonsRunMessage(refused)}\n`)
        return exitCodes.failed
      }
      if (!options.dryRun) context.stderr.write('Done.\n')
      return exitCodes.done
    })
  },
})

const daemonsRunMessage = ({ daemons }: ServiceChange): string =>
  `outboxd: ${pluralize(daemons.length, 'daemon')} still ${daemons.length === 1 ? 'runs' : 'run'} (${daemons.join(', ')}), so nothing was changed. Stop all daemons, then run the command again`
