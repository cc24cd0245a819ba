import { systemClock } from '../clock.ts'
import { readConfig } from '../config.ts'
import { describeOutboxIdentity, isSameOutbox, readServedOutbox, type StartPosition } from '../ledger/binding.ts'
import { adopt, readServiceChange, type ServiceChange } from '../ledger/operator/adopt.ts'
import { rowsBeforeStartMessage, startPositionMessage } from '../operations/databaseMessages.ts'
import { withOutbox } from '../operations/databases.ts'
import { readBacklog } from '../outbox/backlog.ts'
import { countRowsBeforeStart, findStartPositionProblem, readPositionForStartNow } from '../outbox/startPosition.ts'
import { pluralize } from '../plainText.ts'
import { formatIsoInstant, parseEpochMs } from '../time.ts'
import { defineCommand } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { actorNameOption, dryRunOption, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'say that the same outbox table or service has a new name, and set the first row to send',
  options: [
    ['--same', 'the table was renamed or its sequence altered, or the service has a new address or client id'],
    ['--start <position>', 'ignore rows before this position: now, id:N, or since:D (2026-11-01, 2h)'],
    actorNameOption,
    reasonOption,
    dryRunOption,
    ['--yes', 'do not ask for confirmation'],
    ['--json', 'print JSON'],
  ],
  help: `A ledger serves one outbox table and one service, for life. If the configuration names others, no daemon starts. If they are the
same under a new name, run this with --same; for a new address or client id of the service, stop all daemons first. Another table
or service needs a ledger of its own: name it in LEDGER_SCHEMA.

Before the first start, --start leaves out old rows: rows before that position are ignored, on all instances and for good.

Examples:
  outboxd adopt --start now              send only rows written from now on
  outboxd adopt --same                   OUTBOX_TABLE was renamed, or SERVICE_BASE_URL has changed`,
  async action(context, options): Promise<number> {
    const given = readStart(options.start)
    const problems = [
      given === undefined
        ? `--start ${options.start}: give now, id:N or since:D, such as id:4711 or since:2026-11-01 (without an offset: UTC)`
        : null,
      options.same || options.start !== undefined ? null : 'give --same or --start',
    ].filter((problem) => problem !== null)
    if (given === undefined) return printUsageErrors(context, problems)
    return withOperator(context, options, problems, async (databases, operator) => {
      // Without a configured service, the ledger keeps its own.
      const service = context.env.SERVICE_BASE_URL === undefined ? null : readConfig(context.env).service
      const served = await readServedOutbox(databases.ledger)
      const { identity: table, shape } = await withOutbox(databases, (outbox) => outbox.inspect())
      const change = service && (await readServiceChange(databases.ledger, service))
      const { identity } = served
      const isTableNew = identity !== null && !isSameOutbox(identity, table)
      const renamed = [
        isTableNew
          ? `the ledger belongs to the outbox ${describeOutboxIdentity(identity)}, and the configuration names ${describeOutboxIdentity(table)}`
          : null,
        change?.served
          ? `the ledger belongs to the service ${change.served.baseUrl}, and the configuration names ${describeService(change)}`
          : null,
      ].filter((each) => each !== null)
      if (renamed.length > 0 && !options.same)
        return printUsageErrors(
          context,
          renamed.map((each) => `${each}. Give --same if it is the same, or correct the configuration`),
        )
      const formerId = identity?.idColumn ?? table.idColumn
      if (formerId !== table.idColumn && shape.columns.has(formerId))
        return printUsageErrors(context, [
          `the ledger knows rows by the column ${formerId}, which the table still has. By ${table.idColumn} all of them would be sent again: name ${formerId} as "id"`,
        ])
      const start = given === 'now' ? await withOutbox(databases, readPositionForStartNow) : given
      const whyNotAllowed =
        start === null ? null : await withOutbox(databases, (outbox) => findStartPositionProblem(outbox, start))
      if (whyNotAllowed !== null) return printUsageErrors(context, [whyNotAllowed])
      const hidden =
        start === null ? null : await withOutbox(databases, (outbox) => countRowsBeforeStart(outbox, start))
      const mayHide = start !== null && hidden === null && identity !== null && !isTableNew
      const notCaptured = mayHide ? (await withOutbox(databases, readBacklog)).waiting : 0
      const lines = [
        `The ledger will belong to the outbox ${describeOutboxIdentity(table)}${service ? ` and the service ${service.baseUrl}` : ''}.`,
        renamed.length > 0 ? 'They are those that the ledger knows, under new names.' : null,
        startPositionMessage(start),
        rowsBeforeStartMessage(hidden),
        notCaptured > 0
          ? `${pluralize(notCaptured, 'row')} ${notCaptured === 1 ? 'is' : 'are'} not captured yet. Those before the start position will never be sent.`
          : null,
      ].filter((line) => line !== null)
      context.stderr.write(`${lines.join('\n')}\n`)
      if (!options.yes && !options.dryRun && !(await askForConfirmation(context, 'Is that right?')))
        return exitCodes.unconfirmed
      const refused = options.dryRun
        ? change
        : await adopt(operator, { table, service, start, isSame: options.same ?? false })
      if (options.json)
        printJson(context, { dryRun: options.dryRun ?? false, table, service: change, start, hidden, notCaptured })
      if (refused !== null && refused.daemons.length > 0) {
        context.stderr.write(`${daemonsRunMessage(refused)}\n`)
        return exitCodes.failed
      }
      if (!options.dryRun) context.stderr.write('Done.\n')
      return exitCodes.done
    })
  },
})

const describeService = ({ served, configured }: ServiceChange): string =>
  served?.baseUrl === configured.baseUrl ? 'another SERVICE_AUTH_URL or SERVICE_CLIENT_ID for it' : configured.baseUrl

const daemonsRunMessage = ({ daemons }: ServiceChange): string =>
  `outboxd: ${pluralize(daemons.length, 'daemon')} still ${daemons.length === 1 ? 'runs' : 'run'} (${daemons.join(', ')}), so nothing was changed. Stop all daemons, then run the command again`

type Start = 'now' | StartPosition | null

function readStart(text: string | undefined): Start | undefined {
  if (text === undefined) return null
  if (text === 'now') return 'now'
  const [, kind, value = ''] = /^(id|since):(.+)$/.exec(text) ?? []
  if (kind === 'id') return { id: value, at: null }
  const atMs = kind === 'since' ? parseEpochMs(value, systemClock.nowMs()) : null
  return atMs === null ? undefined : { id: null, at: formatIsoInstant(atMs) }
}
