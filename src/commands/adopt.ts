import { systemClock } from '../clock.ts'
import { readConfig } from '../config.ts'
import { describeOutboxIdentity, OutboxMismatch, readServedOutbox, type StartPosition } from '../ledger/binding.ts'
import {
  type Adoption,
  adoptOutbox,
  adoptService,
  countWorkUnderWay,
  judgeServiceChange,
  readServiceChangeImpact,
  type ServiceAdoption,
  type WorkUnderWay,
} from '../ledger/operator/adoptOutbox.ts'
import { rowsBeforeStartMessage, startPositionMessage } from '../operations/databaseMessages.ts'
import { type Databases, withOutbox } from '../operations/databases.ts'
import { readBacklog } from '../outbox/backlog.ts'
import {
  countRowsBeforeStart,
  findStartPositionProblem,
  type RowsBeforeStart,
  readPositionForStartNow,
} from '../outbox/startPosition.ts'
import { pluralize } from '../plainText.ts'
import { formatIsoInstant, parseEpochMs } from '../time.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { actorNameOption, dryRunOption, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'set which outbox table and service the ledger belongs to, and the first row to send',
  options: [
    ['--same', 'the table has the same rows as before (it was renamed or moved), or the ERP edits captured rows'],
    ['--new', 'the table has different rows, or its ids began again (truncate … restart identity)'],
    ['--service', 'bind the ledger to the configured service'],
    ['--start <position>', 'ignore rows before this position: now, id:N, or since:D (2026-11-01, 2h)'],
    actorNameOption,
    reasonOption,
    dryRunOption,
    ['--yes', 'do not ask for confirmation'],
    ['--json', 'print JSON'],
  ],
  help: `A ledger serves one outbox table. If the configuration names a different one, nothing is captured until you run this with --same
or --new. Before the first start, --start is enough: rows before that position are ignored, on all instances and for good.

A ledger serves one service, too. --service binds it to the configured one, for instance to production after a test. Stop all
daemons first. The command refuses while the former service has records that have not ended: let a daemon finish them, or
settle them with resolve and discard. Add --same if only the address or the client id of the service changed.

Examples:
  outboxd adopt --start now              send only rows written from now on
  outboxd adopt --new --yes              the table was emptied, and its ids began again
  outboxd adopt --same                   OUTBOX_TABLE was renamed
  outboxd adopt --service                from test to production`,
  async action(context, options): Promise<number> {
    const start = readStart(options.start)
    const problems = [
      start === undefined
        ? `--start ${options.start}: give now, id:N or since:D, such as id:4711 or since:2026-11-01 (without an offset: UTC)`
        : null,
      options.same && options.new ? 'give --same or --new, not both' : null,
      options.service && (options.new || start !== null) ? '--service can be combined only with --same' : null,
      !options.service && !options.same && !options.new && start === null
        ? 'give --same, --new, --start or --service'
        : null,
    ].filter((problem) => problem !== null)
    if (start === undefined) return printUsageErrors(context, problems)
    if (options.service && problems.length === 0) return moveService(context, options)
    return withOperator(context, options, problems, async (databases, operator) => {
      const served = await readServedOutbox(databases.ledger)
      const identity = await withOutbox(databases, (outbox) => outbox.readIdentity())
      const isServed =
        served.identity === null || describeOutboxIdentity(served.identity) === describeOutboxIdentity(identity)
      if (!isServed && !options.same && !options.new) {
        const its = served.identity === null ? '' : describeOutboxIdentity(served.identity)
        return printUsageErrors(context, [
          `the ledger belongs to the outbox ${its}. Give --same if ${describeOutboxIdentity(identity)} has the same rows, or --new if its rows are different`,
        ])
      }
      const position = start === 'now' ? await withOutbox(databases, readPositionForStartNow) : start
      const whyNotAllowed =
        position === null ? null : await withOutbox(databases, (outbox) => findStartPositionProblem(outbox, position))
      if (whyNotAllowed !== null) return printUsageErrors(context, [whyNotAllowed])
      const hidden =
        position === null ? null : await withOutbox(databases, (outbox) => countRowsBeforeStart(outbox, position))
      const isKnown = isServed && served.identity !== null && !options.new
      const notCaptured = position !== null && hidden === null && isKnown ? await countNotCaptured(databases) : 0
      const rows = options.new ? 'new' : options.same ? 'same' : null
      const adoption: Adoption = { identity, rows, start: position }
      const underWay = await countWorkUnderWay(databases.ledger)
      context.stderr.write(preview(adoption, underWay, { hidden, notCaptured }))
      if (!options.yes && !options.dryRun && !(await askForConfirmation(context, 'Is that right?')))
        return exitCodes.unconfirmed
      if (!options.dryRun) {
        await adoptOutbox(operator, adoption)
        context.stderr.write(`The ledger belongs to the outbox ${describeOutboxIdentity(identity)}.\n`)
      }
      if (options.json)
        printJson(context, {
          dryRun: options.dryRun ?? false,
          ...{ ...adoption, rows: rows ?? 'same' },
          ...{ underWay, hidden, notCaptured },
        })
      return exitCodes.done
    })
  },
})

type AdoptOptions = OptionsOf<typeof command>

type Start = 'now' | StartPosition | null

async function moveService(context: CommandContext, options: AdoptOptions): Promise<number> {
  const { service } = readConfig(context.env)
  const isSame = options.same ?? false
  return withOperator(context, options, [], async ({ ledger }, operator) => {
    const impact = await readServiceChangeImpact(ledger, service)
    const kind = judgeServiceChange(impact, isSame)
    if (kind === 'adopted') {
      const former = impact.served?.baseUrl ?? 'no service yet'
      const others = former === service.baseUrl ? ' with the configured SERVICE_AUTH_URL and SERVICE_CLIENT_ID' : ''
      const meaning = isSame ? 'It is the same service, and knows all records' : 'It is a different service'
      context.stderr.write(
        `The ledger belongs to ${former}. It will belong to ${service.baseUrl}${others}. ${meaning}.\n`,
      )
      if (!options.yes && !options.dryRun && !(await askForConfirmation(context, 'Is that right?')))
        return exitCodes.unconfirmed
    }
    const mayWrite = kind === 'adopted' && !options.dryRun
    const adoption = mayWrite ? await adoptService(operator, { service, isSame }) : { kind, impact }
    if (options.json)
      printJson(context, { dryRun: options.dryRun ?? false, same: isSame, result: adoption.kind, ...adoption.impact })
    if (!options.dryRun || kind !== 'adopted') context.stderr.write(`${serviceMessage(adoption, service.baseUrl)}\n`)
    return adoption.kind === 'adopted' || adoption.kind === 'served' ? exitCodes.done : exitCodes.failed
  })
}

function serviceMessage({ kind, impact: { daemons, records, served } }: ServiceAdoption, baseUrl: string): string {
  switch (kind) {
    case 'adopted':
      return `The ledger belongs to the service ${baseUrl}.`
    case 'served':
      return `The ledger already belongs to the service ${baseUrl}.`
    case 'daemons':
      return `outboxd: ${pluralize(daemons.length, 'daemon')} still ${daemons.length === 1 ? 'runs' : 'run'} (${daemons.join(', ')}), so nothing was changed. Stop all daemons, then run the command again`
    case 'records': {
      const counts = Object.entries(records).map(([state, many]) => `${many} ${state}`)
      return `outboxd: records were sent to ${served?.baseUrl} and have not ended (${counts.join(', ')}). A different service does not know them, so nothing was changed. Let a daemon finish them at the former service, or settle them (\`outboxd resolve\`, \`outboxd discard\`). If only the address or client id changed, add --same`
    }
    default:
      return kind satisfies never
  }
}

/** Returns 0 if the ids started again, because the count is then unknown. */
async function countNotCaptured(databases: Databases): Promise<number> {
  try {
    return (await withOutbox(databases, readBacklog)).waiting
  } catch (error) {
    if (!(error instanceof OutboxMismatch)) throw error
    return 0
  }
}

function readStart(text: string | undefined): Start | undefined {
  if (text === undefined) return null
  if (text === 'now') return 'now'
  const [, kind, value = ''] = /^(id|since):(.+)$/.exec(text) ?? []
  if (kind === 'id') return { id: value, at: null }
  const atMs = kind === 'since' ? parseEpochMs(value, systemClock.nowMs()) : null
  return atMs === null ? undefined : { id: null, at: formatIsoInstant(atMs) }
}

function preview(
  { identity, rows, start }: Adoption,
  { submissions, reports, sent }: WorkUnderWay,
  { hidden, notCaptured }: { hidden: RowsBeforeStart | null; notCaptured: number },
): string {
  const lines = [
    `The ledger will belong to the outbox ${describeOutboxIdentity(identity)}.`,
    rows === 'new'
      ? 'Its rows are new to the ledger: each row that waits will be sent.'
      : 'Its rows are the rows that the ledger knows.',
    rows === 'new' && sent > 0
      ? `The ledger has already sent ${pluralize(sent, 'record')} of this outbox. If their rows still wait (in a table without a state: if they still exist), they are sent AGAIN.`
      : null,
    startPositionMessage(start),
    rowsBeforeStartMessage(hidden),
    notCaptured > 0
      ? `${pluralize(notCaptured, 'row')} ${notCaptured === 1 ? 'is' : 'are'} not captured yet. Those before the start position will never be sent.`
      : null,
    rows === 'new' && submissions + reports > 0
      ? `${pluralize(submissions, 'record')} of the former outbox ${submissions === 1 ? 'is' : 'are'} under way and will be finished. Their outcomes, and ${reports} outcomes of ended records, will not be written back.`
      : null,
  ]
  return lines.flatMap((line) => (line === null ? [] : [`${line}\n`])).join('')
}
