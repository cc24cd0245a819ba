import { readStoreConfig } from '../config.ts'
import { readFoundHistory } from '../ledger/history/readHistory.ts'
import { type Activity, readActivity } from '../ledger/operator/readActivity.ts'
import { readReadOnly } from '../ledger/operator/readServer.ts'
import { type RecoveredAs, readLastRecovery } from '../ledger/operator/recover.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import {
  describeOtherDaemons,
  findLedgerBesideOurs,
  isHistoryUnseen,
  stopAsRestored,
} from '../operations/compareDatabases.ts'
import { readOnlyMessage } from '../operations/databaseMessages.ts'
import { type Databases, operatorOf } from '../operations/databases.ts'
import { lastRecoveryMessage, lossJson, lossMessages } from '../operations/lossMessages.ts'
import {
  compareAgain,
  countNamed,
  exceptFor,
  findLoss,
  type Loss,
  type TakenIn,
  takeIn,
} from '../operations/recover.ts'
import { secondLedgerMessage } from '../outbox/secondLedger.ts'
import { escapeControl, pluralize } from '../plainText.ts'
import { showDuration } from '../time.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { confirm } from './terminal/confirm.ts'
import { createProgress, exit, printJson, usageError } from './terminal/context.ts'
import { actorOf, actorProblems, byOption, reasonOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'after the ledger’s database was restored or failed over: take what may have been sent, and go on',
  options: [
    [
      '--as <state|name>',
      'uncertain: you decide about each; new: outboxd sends each. Any other word: who does this, for the log',
      { read: (word: string, before: readonly string[] = []): string | readonly string[] => [...before, word] },
    ],
    ['--waiting', 'rows that wait in the outbox may have been sent: the outbox was restored, too'],
    ['--no-waiting', 'rows that wait in the outbox were never sent: only the ledger was restored'],
    ['--restored', 'the database was restored and outboxd did not notice: stop all daemons now'],
    byOption,
    reasonOption,
    ['--dry-run', 'show what it would be; change nothing'],
    ['--yes', 'do not ask'],
    ['--json', 'as JSON'],
  ],
  help: `If the ledger went back in time, daemons have noticed and send nothing. This shows what they noticed and which records may have
been sent since: what the ledger has as queued, rows that wait in an outbox which went back with it, and rows that say they
were taken and that the ledger does not know. Once these are taken in, sending goes on.
Two rules: a record whose row names a transaction has arrived, and is tracked by it; all else becomes what --as says.
--as uncertain is the safe one: settle each with resolve, or many with resolve --file. --as new sends twice what had arrived, unless the
service recognises the idempotency key; what the ledger knew keeps its own.
--restored is for what no daemon can notice (docs/run/restore.md, "Backup and restore"): it says so to all of them before anything else.
If the history is as it was, it compares the whole outbox with the ledger and takes in what that has lost.
Safe to run twice, and beside daemons.

Examples:
  outboxd recover --dry-run
  outboxd recover --as uncertain
  outboxd recover --as uncertain --as "Erin Bell" --reason "restored from last night's backup"`,
  /** @returns 3 if there is nothing, 4 if it was not confirmed, 1 if it was interrupted */
  async action(context, options): Promise<number> {
    const { states, names } = readAs(options)
    const [as] = states
    const given = { as: names[0], reason: options.reason }
    const problems = actorProblems(given)
    if (states.length > 1) problems.push('--as uncertain and --as new exclude each other: give one of them')
    if (names.length > 1)
      problems.push(`${names.join(' and ')}: give one name. --as takes uncertain or new, and once a name`)
    if (as === undefined && !options.dryRun) problems.push('give --as uncertain or --as new, or --dry-run')
    if (problems.length > 0) return usageError(context, problems)
    const mappings = loadMappings(readStoreConfig(context.env).mappingsDir)
    const actor = actorOf(context, given)
    return withDatabases(context, async (databases) => {
      const operator = operatorOf(databases, actor)
      const say = (sentence: string) => void context.stderr.write(`${sentence}\n`)
      const unusable = await whyUnusable(databases, options)
      if (unusable !== null) {
        say(`outboxd: ${unusable}. Nothing was changed.`)
        return exit.failed
      }
      const isStopped =
        options.restored === true && !options.dryRun && (await readFoundHistory(databases.ledger)) === null
      if (isStopped) {
        await stopAsRestored(databases, operator)
        say('Everybody pauses (history) from now on, and the whole budget counts as spent.')
      }
      const unchanged = isStopped
        ? 'Nothing was taken in: everybody pauses (history) until outboxd recover.'
        : 'Nothing was changed.'
      const reading = {
        goOn: () => !context.signal.aborted,
        onProgress: createProgress(context, (done: number, of: number) => `Read ${done} of ${pluralize(of, 'row')} …`),
      }
      const said = { isWaitingToo: options.waiting, sayer: options.restored ? actor.who : undefined }
      const loss = await findLoss(databases, said, reading).catch((error: unknown) => {
        say(`outboxd: what there is to recover could not be read. ${unchanged}`)
        throw error
      })
      if (context.signal.aborted && loss.history !== null) {
        say(`outboxd: interrupted before all was looked at. ${unchanged}`)
        return exit.failed
      }
      const last = await readLastRecovery(databases.ledger)
      const second = await findLedgerBesideOurs(databases)
      if (second !== null) say(`outboxd: ${secondLedgerMessage(second)}.`)
      if (options.json) printJson(context, lossJson(loss, last))
      const messages = lossMessages(loss).map(escapeControl)
      if (loss.history === null && loss.gap.rows.length === 0) {
        const before = lastRecoveryMessage(last)
        for (const message of [...messages, ...(before === null ? [] : [escapeControl(before)])]) say(message)
        if (!options.dryRun) await compareAgain({ databases, operator, say, ...reading })
        return exit.nothing
      }
      if (!options.json) context.stdout.write(messages.map((message) => `${message}\n`).join(''))
      if (options.restored && options.dryRun) say('This is what it would be: nobody was stopped.')
      if (options.dryRun || as === undefined) return exit.done
      if (loss.history !== null && loss.gap.isCut)
        say(
          'outboxd: interrupted, or there is more than one run compares: take it in by another, before sending goes on',
        )
      if (context.signal.aborted) return exit.failed
      if (!options.yes) {
        const answer = await confirm(context, question(loss, as))
        if (answer === 'no-terminal') say('outboxd: this is no terminal, so nobody could confirm: give --yes')
        if (answer !== 'yes') {
          if (isStopped) say(unchanged)
          return exit.unconfirmed
        }
      }
      const onTaken = createProgress(context, (done: number, of: number) => `Took in ${done} of ${of} …`)
      const taken = await takeIn({ databases, operator, mappings, onTaken, say, ...reading }, loss, as)
      return conclude(databases, taken, { isStanding: loss.history !== null, say })
    })
  },
})

type RecoverOptions = OptionsOf<typeof command>

/** Tells states from names in `--as`: it took only a state before 0.2. `--by` is the older option for the name. */
function readAs({ as = [], by }: RecoverOptions): { states: RecoveredAs[]; names: string[] } {
  const words = [as].flat()
  const isState = (word: string) => word === 'uncertain' || word === 'new'
  const states = [...new Set(words.filter(isState))] as RecoveredAs[]
  return { states, names: [...words.filter((word) => !isState(word)), ...(by === undefined ? [] : [by])] }
}

async function whyUnusable(databases: Databases, { restored }: RecoverOptions): Promise<string | null> {
  const cause = await readReadOnly(databases.ledger)
  if (cause !== null) return readOnlyMessage({ of: 'ledger', cause })
  const others = await describeOtherDaemons(databases)
  if (others !== null) return `${others}. Rows that it took are not lost, and to take them in could send them twice`
  if (restored || !(await isHistoryUnseen(databases))) return null
  return 'the ledger’s history is another than the daemons had agreed to, and none has looked at it yet: start one, or give --restored'
}

function question({ gap, history }: Loss, as: RecoveredAs): string {
  const named = history === null ? countNamed(gap.rows) : history.named.length
  const risk =
    as === 'new' && (history !== null || named < gap.rows.length) ? ' What has arrived before arrives twice.' : ''
  const what = history === null ? `Take ${pluralize(gap.rows.length, 'row')} in` : 'Take all of it'
  return `${what} as ${as}${exceptFor(named)}${history === null ? '' : ', and go on'}?${risk}`
}

/** @param isStanding whether all sending is paused until `recover` ends */
async function conclude(
  databases: Databases,
  taken: TakenIn,
  { isStanding, say }: { isStanding: boolean; say(sentence: string): void },
): Promise<number> {
  if (taken === 'interrupted')
    say('outboxd: interrupted: what was taken in stays so, and nothing is sent until it is given again')
  if (taken === 'changed') {
    const last = lastRecoveryMessage(await readLastRecovery(databases.ledger))
    say(`What was found has changed meanwhile: look again.${last === null ? '' : ` ${escapeControl(last)}`}`)
  }
  if (taken !== 'done') return exit.failed
  if (isStanding) say(whenItGoesOn(await readActivity(databases.ledger, databases.config.keyOnFailure)))
  return exit.done
}

function whenItGoesOn({ nextSlotMs, nowMs }: Pick<Activity, 'nextSlotMs' | 'nowMs'>): string {
  if (nextSlotMs === null) return 'Sending goes on.'
  return `Sending goes on in ${showDuration(nextSlotMs - nowMs)}: until then the whole budget counts as spent, since nobody knows what of it was.`
}
