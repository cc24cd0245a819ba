import { systemClock } from '../clock.ts'
import { readSuspectedLoss } from '../ledger/history/history.ts'
import { findReadOnlyCause } from '../ledger/operator/readServer.ts'
import { type RecoveredAs, readLastRecovery } from '../ledger/operator/recover.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import {
  findOutboxMismatch,
  isLedgerHistoryChangeUnnoticed,
  pauseDaemonsForRestoredLedger,
} from '../operations/compareDatabases.ts'
import { readOnlyMessage } from '../operations/databaseMessages.ts'
import type { Databases } from '../operations/databases.ts'
import { lastRecoveryMessage, ledgerLossJson, ledgerLossLines } from '../operations/lossMessages.ts'
import {
  countRowsNamingTransaction,
  exceptRowsNamingTransactionSuffix,
  findLedgerLoss,
  type LedgerLoss,
  recoverFromLedgerLoss,
  reportEndedRecordsAgain,
} from '../operations/recover.ts'
import { escapeControl, pluralize } from '../plainText.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { createProgressPrinter, exitCodes, printJson } from './terminal/context.ts'
import { byOption, dryRunOption, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'settle what may have been sent, after the ledger was restored or failed over, and resume sending',
  options: [
    [
      '--as <state>',
      'for records that may have been sent: uncertain (you settle each) or new (outboxd sends each)',
      { read: (word: string, before: readonly string[] = []): string | readonly string[] => [...before, word] },
    ],
    ['--waiting', 'say that waiting rows may have been sent (default)'],
    ['--no-waiting', 'say that no waiting row was sent: the outbox was not restored'],
    ['--restored', 'say that outboxd did not notice a restore; pauses all daemons at once'],
    byOption,
    reasonOption,
    dryRunOption,
    ['--yes', 'do not ask for confirmation'],
    ['--json', 'print JSON'],
  ],
  help: `Use it after the database of the ledger was restored or failed over. When a daemon has noticed this, nothing is sent, because
records may have been sent that the ledger does not know. The command shows these records, asks you, and gives each a state. Then
sending resumes.

If a record's row names a transaction, the record becomes accepted, or completed if it is not tracked. If the id is invalid or
another record has it, the record becomes uncertain. If the row no longer maps, the record becomes rejected (may have
arrived). --as decides about all other records that the ledger has as queued, and about rows that are marked but missing in
the ledger (it has no default):
  --as uncertain   safe: each stays unsent until you settle it with \`outboxd resolve\`
  --as new         sends them: what had arrived arrives twice. Lost records get a new idempotency key, so the service cannot
                   recognise them. Use it only if none of these records arrived
Accepted and ended records stay as they are. For records being sent, UNCERTAIN_POLICY decides within 10 s.

Waiting rows have no mark yet. They may have been sent, too, if the outbox was restored with the ledger. So --as decides about
them, unless you give --no-waiting. If you do not know, --as uncertain is safe.

If daemons could not notice the restore, give --restored: see docs/run/restore.md, "What cannot be noticed". If nothing was
restored, but \`outboxd status\` says that rows are missing in the ledger, the command captures them: --as decides if they become
uncertain or are sent. You can repeat it, also while daemons run.

Examples:
  outboxd recover --dry-run
  outboxd recover --as uncertain
  outboxd recover --as uncertain --by "Erin Bell" --reason "restored from last night's backup"`,
  async action(context, options): Promise<number> {
    const { states, names } = readAs(options)
    const [as] = states
    const problems: string[] = []
    if (states.length > 1) problems.push('give --as uncertain or --as new, not both')
    if (names.length > 1)
      problems.push(`${names.join(' and ')}: give one name, such as --as uncertain --by "Erin Bell"`)
    if (as === undefined && !options.dryRun) problems.push('give --as uncertain, --as new or --dry-run')
    const given = { as: names[0], reason: options.reason }
    return withOperator(context, given, problems, async (databases, operator, { mappingsDir }) => {
      const mappings = loadMappings(mappingsDir)
      const say = (sentence: string) => void context.stderr.write(`${sentence}\n`)
      const unusable = await whyUnusable(databases, options)
      if (unusable !== null) {
        say(`outboxd: ${unusable}. Nothing was changed.`)
        return exitCodes.failed
      }
      const isStopped =
        options.restored === true && !options.dryRun && (await readSuspectedLoss(databases.ledger)) === null
      if (isStopped) {
        await pauseDaemonsForRestoredLedger(operator)
        say('All daemons are paused (history) now, and the whole budget counts as spent.')
      }
      const unchanged = isStopped
        ? 'Nothing was settled. All daemons stay paused (history) until you run the command again and confirm it.'
        : 'Nothing was changed.'
      const goOn = () => !context.signal.aborted
      const said = {
        areWaitingRowsDoubtful: options.waiting,
        restoredBy: options.restored ? operator.actor.who : undefined,
      }
      const elapsedMs = systemClock.stopwatch()
      const showProgress = createProgressPrinter(
        context,
        () => `Reading the outbox for ${Math.round(elapsedMs() / 1000)} s …`,
      )
      const goOnReading = () => {
        showProgress()
        return goOn()
      }
      const loss = await findLedgerLoss(databases, said, goOnReading).catch((error: unknown) => {
        say(`outboxd: the records to recover could not be read. ${unchanged}`)
        throw error
      })
      if (context.signal.aborted && loss.history !== null) {
        say(`outboxd: interrupted before everything was read. ${unchanged}`)
        return exitCodes.failed
      }
      const last = await readLastRecovery(databases.ledger)
      if (options.json) printJson(context, ledgerLossJson(loss, last))
      const messages = ledgerLossLines(loss, options.waiting !== undefined).map(escapeControl)
      if (loss.history === null && loss.gap.rows.length === 0) {
        const before = lastRecoveryMessage(last)
        for (const message of [...messages, ...(before === null ? [] : [escapeControl(before)])]) say(message)
        if (!options.dryRun) await reportEndedRecordsAgain({ databases, operator, say, goOn: goOnReading })
        return exitCodes.nothing
      }
      if (!options.json) context.stdout.write(messages.map((message) => `${message}\n`).join(''))
      if (options.restored && options.dryRun) say('This was a dry run: no daemon was stopped.')
      if (options.dryRun || as === undefined) return exitCodes.done
      if (context.signal.aborted) return exitCodes.failed
      if (!options.yes && !(await askForConfirmation(context, question(loss, as), { otherwise: unchanged })))
        return exitCodes.unconfirmed
      const onTaken = createProgressPrinter(context, (done: number, of: number) => `Settled ${done} of ${of} …`)
      const taken = await recoverFromLedgerLoss({ databases, operator, mappings, onTaken, say, goOn }, loss, as)
      if (taken === 'interrupted')
        say(
          'outboxd: some records are not settled yet. The settled ones stay settled. Run the command again: only then does sending resume',
        )
      if (taken === 'changed') {
        const faster = lastRecoveryMessage(await readLastRecovery(databases.ledger))
        say(
          `The findings have changed, so nothing more was done. Run the command again.${faster === null ? '' : ` ${escapeControl(faster)}`}`,
        )
      }
      if (taken !== 'done') return exitCodes.failed
      if (loss.history !== null) say('Sending resumes. `outboxd status` says when a request is free.')
      return exitCodes.done
    })
  },
})

type RecoverOptions = OptionsOf<typeof command>

/** `--as` takes states and operators' names: separates them. */
function readAs({ as = [], by }: RecoverOptions): { states: RecoveredAs[]; names: string[] } {
  const words = [as].flat()
  const isState = (word: string) => word === 'uncertain' || word === 'new'
  const states = [...new Set(words.filter(isState))] as RecoveredAs[]
  return { states, names: [...words.filter((word) => !isState(word)), ...(by === undefined ? [] : [by])] }
}

async function whyUnusable(databases: Databases, { restored }: RecoverOptions): Promise<string | null> {
  const cause = await findReadOnlyCause(databases.ledger)
  if (cause !== null) return readOnlyMessage(cause)
  if (restored || !(await isLedgerHistoryChangeUnnoticed(databases))) return null
  const noted = 'the ledger may have lost committed data, but no daemon has looked at it yet'
  const mismatch = await findOutboxMismatch(databases)
  return mismatch === null
    ? `${noted}. Start a daemon, or give --restored`
    : `${noted}, and none can start: ${mismatch}. Then start a daemon`
}

function question({ gap, history }: LedgerLoss, as: RecoveredAs): string {
  const named = history === null ? countRowsNamingTransaction(gap.rows) : history.named.length
  const risk =
    as === 'new' && (history !== null || named < gap.rows.length) ? ' What has arrived will arrive twice.' : ''
  const what = history === null ? `Capture ${pluralize(gap.rows.length, 'row')} again` : 'Settle all of these'
  return `${what} as ${as}${exceptRowsNamingTransactionSuffix(named)}${history === null ? '' : ', and resume sending'}?${risk}`
}
