import { systemClock } from '../clock.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { type State, states } from '../model.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { isConfirmed } from './confirm.ts'
import type { CommandContext } from './context.ts'
import { exit, usageError } from './exitCodes.ts'
import { type FilterOptions, hasFilters, readFilters } from './filters.ts'
import { narrowByText } from './narrowByText.ts'
import { findAll } from './references.ts'
import { noteOn, submissionTable } from './submissionTable.ts'
import { escapeControl, pluralize, renderTable, truncate } from './table.ts'

/** How a change in bulk is steered, beside the filters. */
export interface BulkOptions extends FilterOptions {
  dryRun?: boolean
  yes?: boolean
  json?: boolean
}

/** A change to many submissions: its name, and what it can be done to. */
export interface BulkChange {
  verb: 'replay' | 'discard'
  allowedStates: readonly State[]
  /** Without ids and --state. */
  defaultStates: readonly State[]
  /** Why a submission in another state is left alone, and what to do instead. */
  whyNotAllowed: (state: State) => string
  /** Why those that may have arrived are left alone unless they are named; null where they are not. */
  whySpared: string | null
  /** What is risked with these, one sentence a line; empty where nothing is. */
  riskOf: (submissions: readonly ListedSubmission[]) => string
  /** Whether it asks even where this is the only one. */
  asksAlways: (submission: ListedSubmission) => boolean
}

/** A submission that is left as it is. */
export interface Skipped {
  submission: Pick<ListedSubmission, 'id' | 'outboxId'>
  reason: string
}

/** What was chosen, or the exit code where nothing is to be done, which has been explained. */
export type Selected =
  | { kind: 'chosen'; submissions: ListedSubmission[]; skipped: Skipped[] }
  | { kind: 'over'; exitCode: number }

/** More at once would only be held in memory; the rest is for the next run. */
const mostAtOnce = 100_000
const rowsShown = 5

/** Whether the ids and filters of a command make sense together. @returns what is wrong, in words */
export function selectionProblems(change: BulkChange, ids: readonly string[], options: BulkOptions): string[] {
  if (ids.length > 0 && (hasFilters(options) || options.limit !== undefined)) return ['give ids or filters, not both']
  const read = readSelection(change, options)
  return read.kind === 'invalid' ? read.problems : []
}

const readSelection = ({ allowedStates, defaultStates, whyNotAllowed }: BulkChange, options: BulkOptions) =>
  readFilters(options, { defaultStates, allowedStates, whyNotAllowed, nowMs: systemClock.nowMs() })

/**
 * Chooses the submissions that a change is for, shows what it would do where it is more than one, and asks.
 *
 * @throws nothing of its own; the options have passed `selectionProblems`
 */
export async function selectForChange(
  context: CommandContext,
  store: OperatorStore,
  change: BulkChange,
  { ids, options }: { ids: readonly string[]; options: BulkOptions },
): Promise<Selected> {
  const named =
    ids.length > 0
      ? await selectNamed(context, store, change, ids)
      : await selectMatching(context, store, change, options)
  if (named.kind === 'over') return named
  const { submissions, skipped } = named
  if (submissions.length === 0 && skipped.length === 0) {
    context.stderr.write(`There is nothing to ${change.verb}.\n`)
    return { kind: 'over', exitCode: exit.nothing }
  }
  if (submissions.length === 0 || options.dryRun) return named
  const asks = ids.length !== 1 || submissions.some(change.asksAlways)
  if (!asks) {
    if (!options.json) context.stderr.write(change.riskOf(submissions))
    return named
  }
  if (!options.json) context.stderr.write(preview(change, submissions, skipped))
  if (options.yes) return named
  const question = `${capital(change.verb)} ${pluralize(submissions.length, 'record')}?`
  return (await isConfirmed(context, question)) ? named : { kind: 'over', exitCode: exit.unconfirmed }
}

async function selectNamed(
  context: CommandContext,
  store: OperatorStore,
  change: BulkChange,
  ids: readonly string[],
): Promise<Selected> {
  const found = await findAll(store, ids)
  if (found.kind === 'invalid') return { kind: 'over', exitCode: usageError(context, found.problems) }
  if (found.kind === 'missing') {
    for (const problem of found.problems) context.stderr.write(`outboxd: ${problem}\n`)
    return { kind: 'over', exitCode: exit.nothing }
  }
  const fits = (submission: ListedSubmission) => change.allowedStates.includes(submission.state)
  return {
    kind: 'chosen',
    submissions: found.submissions.filter(fits),
    skipped: found.submissions
      .filter((submission) => !fits(submission))
      .map((submission) => ({
        submission,
        reason: `is ${submission.state}: ${change.whyNotAllowed(submission.state)}`,
      })),
  }
}

async function selectMatching(
  context: CommandContext,
  store: OperatorStore,
  change: BulkChange,
  options: BulkOptions,
): Promise<Selected> {
  const read = readSelection(change, options)
  if (read.kind === 'invalid') return { kind: 'over', exitCode: exit.usage }
  const filter = await narrowByText(context, store, read)
  const limit = Math.min(read.limit ?? mostAtOnce, mostAtOnce)
  const { whySpared } = change
  if (whySpared === null) return { kind: 'chosen', submissions: await store.select(filter, limit), skipped: [] }
  const submissions = filter.mayHaveArrived ? [] : await store.select({ ...filter, mayHaveArrived: false }, limit)
  const spared = await store.select({ ...filter, mayHaveArrived: true }, mostAtOnce)
  const skipped = spared.map((submission) => ({ submission, reason: whySpared }))
  return { kind: 'chosen', submissions, skipped }
}

/** What a change would do: how many of each kind, and the first few. */
export function preview(
  change: BulkChange,
  submissions: readonly ListedSubmission[],
  skipped: readonly Skipped[],
): string {
  const groups = Object.values(
    Object.groupBy(
      submissions,
      ({ state, type, code, mayHaveArrived }) => `${state} ${type} ${code} ${mayHaveArrived}`,
    ),
  )
  const rows = groups
    .flatMap((group) => (group?.[0] ? [{ count: group.length, ...group[0] }] : []))
    .sort((a, b) => b.count - a.count || states.indexOf(a.state) - states.indexOf(b.state))
  const shown = submissions.slice(0, rowsShown)
  const more = submissions.length - shown.length
  const cap = submissions.length === mostAtOnce ? ` (at most ${mostAtOnce} at once: run it again for the rest)` : ''
  return [
    `This would ${change.verb} ${pluralize(submissions.length, 'record')}${cap}:\n\n`,
    renderTable(
      ['COUNT', 'STATE', 'TYPE', 'CODE', 'NOTE'],
      rows.map(({ count, ...row }) => [
        String(count),
        row.state,
        truncate(row.type, 24),
        truncate(row.code ?? '-', 16),
        noteOn(row),
      ]),
    ),
    `\n${submissionTable(shown)}`,
    more > 0 ? `... and ${more} more\n` : '',
    '\n',
    change.riskOf(submissions),
    skippedLines(skipped),
  ].join('')
}

const skippedShownMax = 20

/** What is left as it is, one line each, the first twenty. */
export function skippedLines(skipped: readonly Skipped[]): string {
  const lines = skipped
    .slice(0, skippedShownMax)
    .map(({ submission, reason }) => `outbox:${submission.outboxId} (${submission.id}) ${reason}`)
  const more = skipped.length - lines.length
  return [...lines, ...(more > 0 ? [`... and ${more} more`] : [])]
    .map((line) => `${escapeControl(truncate(line, 400))}\n`)
    .join('')
}

/** The pieces of a list, at most `size` long. */
export function* batches<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
