import { readStoreConfig } from '../config.ts'
import type { Activity } from '../ledger/operator/readActivity.ts'
import type { RecoveredAs } from '../ledger/operator/recoverHistory.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { readOnlyMessage } from '../operations/databaseMessages.ts'
import { countNamed, type Doubt, readDoubts, settledDoubts } from '../operations/doubts.ts'
import { lastRecoveryMessage, lossJson, lossMessages } from '../operations/lossMessages.ts'
import { findLoss, type Loss, type LostHistory, takeInDoubts, takeInRows } from '../operations/recover.ts'
import { secondLedgerMessage } from '../outbox/secondLedger.ts'
import { escapeControl, pluralize } from '../plainText.ts'
import type { OperatorChanges } from '../store/operatorChanges.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { showDuration } from '../time.ts'
import { actorOf, actorProblems, byOption, reasonOption } from './terminal/actor.ts'
import type { CommandModule, OptionRow, OptionsOf } from './terminal/command.ts'
import { confirm } from './terminal/confirm.ts'
import { type CommandContext, createProgress, exit, printJson, usageError } from './terminal/context.ts'
import { withOperatorStore } from './terminal/withOperatorStore.ts'

const options = [
  [
    '--as <state|name>',
    'uncertain: a person decides about each; new: we send each. Given again with any other word: who does this, for the log',
    { read: (word: string, before: readonly string[] = []) => [...before, word] },
  ],
  ['--waiting', 'also the rows that wait in the outbox may have been sent: it was restored, too'],
  ['--no-waiting', 'rows that wait in the outbox were never sent: the ledger alone was restored'],
  ['--restored', 'it was put back, and nobody has noticed: everybody stops at once'],
  byOption,
  reasonOption,
  ['--dry-run', 'show what it would be; change nothing'],
  ['--yes', 'do not ask'],
  ['--json', 'as JSON'],
] as const satisfies readonly OptionRow[]

/** `as`: what becomes of the records (`uncertain` or `new`), and who says so: any other word is a name, as of every command. */
export type RecoverOptions = Omit<OptionsOf<typeof options>, 'as'> & { as?: string | readonly string[] }

export const command: CommandModule = {
  action: recover,
  description: 'after the ledger’s database was restored or failed over: take what may have been sent, and go on',
  options,
  help: `Where the ledger went back in time, daemons have noticed and send nothing. This shows what they noticed and which records may have
been sent since: what the ledger has as queued, rows that wait in an outbox which went back with it, and rows that say they
were taken and that the ledger does not know. Once these are taken in, sending goes on.
Their outbox rows are read, too. Whatever --as says: one whose row names a transaction has arrived, and is tracked on by it; one
whose row says that it came to its end, and names none, is uncertain.
--as uncertain is the safe one: settle each with resolve, or many with resolve --file. --as new sends twice what had arrived, unless the
service recognises the idempotency key; what the ledger knew keeps its own.
--restored is for what no daemon can notice (docs/operations.md, "Backup and restore"): it says so to all of them before anything else.
Where the history is as it was, it compares the whole outbox with the ledger and takes in what that has lost.
Safe to run twice, and beside daemons.

Examples:
  outboxd recover --dry-run
  outboxd recover --as uncertain
  outboxd recover --as uncertain --as "Erin Bell" --reason "restored from last night's backup"`,
}

/** Takes in what may have been sent. @returns 3 where there is nothing, 4 where nobody confirmed, 1 where it was interrupted */
export async function recover(context: CommandContext, options: RecoverOptions): Promise<number> {
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
  return withOperatorStore(context, async (store) => {
    const changes = store.actingAs(actor)
    const cause = await store.readReadOnly('ledger')
    const unusable = cause !== null ? readOnlyMessage({ of: 'ledger', cause }) : await whyUnseen(store, options)
    if (unusable !== null) {
      context.stderr.write(`outboxd: ${unusable}. Nothing was changed.\n`)
      return exit.failed
    }
    const isStopped = options.restored && !options.dryRun ? await stop(context, store, changes) : false
    const unchanged = isStopped
      ? 'Nothing was taken in: everybody pauses (history) until outboxd recover.'
      : 'Nothing was changed.'
    const said = { isWaitingToo: options.waiting, sayer: options.restored ? actor.who : undefined }
    const loss = await findLoss(store, said, reading(context)).catch((error: unknown) => {
      context.stderr.write(`outboxd: what there is to recover could not be read. ${unchanged}\n`)
      throw error
    })
    if (context.signal.aborted && loss.history !== null) {
      context.stderr.write(`outboxd: interrupted before all was looked at. ${unchanged}\n`)
      return exit.failed
    }
    const last = await store.readLastRecovery()
    const second = await store.outbox.findSecondLedger()
    if (second !== null) context.stderr.write(`outboxd: ${secondLedgerMessage(second)}.\n`)
    if (options.json) printJson(context, lossJson(loss, last))
    const messages = lossMessages(loss).map((line) => `${escapeControl(line)}\n`)
    if (loss.history === null && loss.gap.rows.length === 0) {
      const before = lastRecoveryMessage(last)
      context.stderr.write([...messages, before === null ? '' : `${escapeControl(before)}\n`].join(''))
      if (!options.dryRun) await compare({ context, changes })
      return exit.nothing
    }
    if (!options.json) context.stdout.write(messages.join(''))
    if (options.restored && options.dryRun) context.stderr.write('This is what it would be: nobody was stopped.\n')
    if (options.dryRun || as === undefined) return exit.done
    if (loss.history !== null && loss.gap.isCut)
      context.stderr.write(
        'outboxd: interrupted, or there is more than one run compares: take it in by another, before sending goes on\n',
      )
    if (context.signal.aborted) return exit.failed
    if (!options.yes) {
      const answer = await confirm(context, question(loss, as))
      if (answer === 'no-terminal')
        context.stderr.write('outboxd: this is no terminal, so nobody could confirm: give --yes\n')
      if (answer !== 'yes') {
        if (isStopped) context.stderr.write(`${unchanged}\n`)
        return exit.unconfirmed
      }
    }
    return takeIn({ context, store, changes, mappings }, loss, as)
  })
}

/** `--as` says a state, as it did before every command had `--as NAME`; `--by` is the older word for the name. */
function readAs({ as = [], by }: RecoverOptions): { states: RecoveredAs[]; names: string[] } {
  const words = [as].flat()
  const isState = (word: string) => word === 'uncertain' || word === 'new'
  const states = [...new Set(words.filter(isState))] as RecoveredAs[]
  return { states, names: [...words.filter((word) => !isState(word)), ...(by === undefined ? [] : [by])] }
}

async function whyUnseen(store: OperatorStore, { restored }: RecoverOptions): Promise<string | null> {
  const others = await store.outbox.describeOtherDaemons()
  if (others !== null) return `${others}. Rows that it took are not lost, and to take them in could send them twice`
  if (restored || !(await store.isHistoryUnseen())) return null
  return 'the ledger’s history is another than the daemons had agreed to, and none has looked at it yet: start one, or give --restored'
}

/** Stops everyone on a person's word, unless a daemon has noticed. @returns whether it was this that stopped them */
async function stop(context: CommandContext, store: OperatorStore, changes: OperatorChanges): Promise<boolean> {
  if ((await store.readFoundHistory()) !== null) return false
  await changes.sayRestored()
  context.stderr.write('Everybody pauses (history) from now on, and the whole budget counts as spent.\n')
  return true
}

const reading = (context: CommandContext) => ({
  goOn: () => !context.signal.aborted,
  onProgress: createProgress(context, (done: number, of: number) => `Read ${done} of ${pluralize(of, 'row')} …`),
})

function question({ gap, history }: Loss, as: RecoveredAs): string {
  if (history === null) {
    const named = countNamed(gap.rows)
    const risk = as === 'new' && named < gap.rows.length ? ' What has arrived before arrives twice.' : ''
    return `Take ${pluralize(gap.rows.length, 'row')} in as ${as}${exceptFor(named)}?${risk}`
  }
  const settled = history.doubts.filter(({ outcome }) => outcome.kind !== 'open').length
  const risk = as === 'new' ? ' What has arrived before arrives twice.' : ''
  return `Take all of it as ${as}${exceptFor(settled)}, and go on?${risk}`
}

const exceptFor = (records: number) =>
  records === 0 ? '' : `, but for ${records} of which the ${records === 1 ? 'row says' : 'rows say'} more`

interface Parts {
  context: CommandContext
  store: OperatorStore
  changes: OperatorChanges
  mappings: Mappings
}

async function takeIn(parts: Parts, loss: Loss, as: RecoveredAs): Promise<number> {
  const { context, store, changes, mappings } = parts
  const goOn = () => !context.signal.aborted
  const { gap, shared, history } = loss
  if (history !== null && (await store.readFoundHistory())?.atMs !== history.found.atMs) return changed(parts)
  const undated = as === 'uncertain' ? (history?.undatedRows ?? []) : []
  const rows = [...gap.rows, ...(history?.inHandRows ?? []), ...undated]
  const onProgress = createProgress(context, (done: number) => `Took ${done} of ${pluralize(rows.length, 'row')} …`)
  const taken = await takeInRows({ outbox: store.outbox, changes, mappings, goOn, onProgress }, rows, { as, shared })
  if (rows.length > 0)
    context.stderr.write(`Took ${pluralize(taken, 'row')} in as ${as}${exceptFor(countNamed(gap.rows))}.\n`)
  if (goOn() && taken < rows.length)
    context.stderr.write(`${pluralize(rows.length - taken, 'row')} left out: gone, or they cannot be read.\n`)
  await compare(parts)
  if (history === null && taken > 0) await changes.noteRecovered(as, taken)
  if (!goOn()) return interrupted(parts)
  if (history === null) return exit.done
  if (gap.isCut) return exit.failed
  return goOnAfter(parts, history, { as, lost: gap.rows, rows: taken })
}

/** Compares what the ledger has now, and has rows told again that know less. */
async function compare({ context, changes }: Pick<Parts, 'context' | 'changes'>): Promise<void> {
  const toldAgain = await changes.compare(() => !context.signal.aborted)
  if (toldAgain > 0)
    context.stderr.write(
      `${pluralize(toldAgain, 'row')} that ${toldAgain === 1 ? 'says that it is' : 'say that they are'} under way ${toldAgain === 1 ? 'has' : 'have'} come to ${toldAgain === 1 ? 'its' : 'their'} end: told again.\n`,
    )
}

/** Takes what the rows say, then what they do not, and lets everybody go on. */
async function goOnAfter(
  parts: Parts,
  { found, doubts: seen, isOutboxInDoubt }: LostHistory,
  { as, lost, rows }: { as: RecoveredAs; lost: Loss['gap']['rows']; rows: number },
): Promise<number> {
  const { context, store, changes } = parts
  const goOn = () => !context.signal.aborted
  const before = { arrived: 0, uncertain: 0, rows }
  // What took a step since it was looked at is looked at again, before anybody sends.
  for (let doubts: readonly Doubt[] = seen; ; { doubts } = await readDoubts(store, lost, reading(context))) {
    const settled = settledDoubts(doubts, as)
    if (settled.length === 0 || !goOn()) break
    const onProgress = createProgress(
      context,
      (done: number) => `Took ${done} of ${pluralize(settled.length, 'record')} …`,
    )
    if (!(await takeInDoubts({ changes, goOn, onProgress }, settled, found.atMs))) return changed(parts)
    for (const { kind } of settled) before[kind] += 1
  }
  if (!goOn()) return interrupted(parts)
  const recovered = await changes.recoverHistory({ as, seenAtMs: found.atMs, isOutboxInDoubt, before })
  if (recovered === null) return changed(parts)
  const { arrived, uncertain } = before
  if (arrived > 0)
    context.stderr.write(
      `${pluralize(arrived, 'record')} ${arrived === 1 ? 'has' : 'have'} arrived, and ${arrived === 1 ? 'is' : 'are'} tracked on.\n`,
    )
  if (uncertain > 0 && as === 'new')
    context.stderr.write(
      `${pluralize(uncertain, 'record')} ${uncertain === 1 ? 'is' : 'are'} uncertain by what the rows say.\n`,
    )
  const queued = recovered.queued + (as === 'uncertain' ? uncertain : 0)
  context.stderr.write(
    `Took ${pluralize(queued, 'record')} that ${queued === 1 ? 'was' : 'were'} queued as ${as}. ${whenItGoesOn(await store.readActivity())}\n`,
  )
  return exit.done
}

function whenItGoesOn({ nextSlotMs, nowMs }: Pick<Activity, 'nextSlotMs' | 'nowMs'>): string {
  if (nextSlotMs === null) return 'Sending goes on.'
  return `Sending goes on in ${showDuration(nextSlotMs - nowMs)}: until then the whole budget counts as spent, since nobody knows what of it was.`
}

function interrupted({ context }: Parts): number {
  context.stderr.write(
    'outboxd: interrupted: what was taken in stays so, and nothing is sent until it is given again\n',
  )
  return exit.failed
}

/** Somebody else was quicker. */
async function changed({ context, store }: Parts): Promise<number> {
  const last = lastRecoveryMessage(await store.readLastRecovery())
  context.stderr.write(
    `What was found has changed meanwhile: look again.${last === null ? '' : ` ${escapeControl(last)}`}\n`,
  )
  return exit.failed
}
