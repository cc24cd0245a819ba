import { eraseMax, type KeyRecord, readRecordsOfKey } from '../ledger/audit/eraseRecords.ts'
import type { Skipped } from '../operations/bulkChange.ts'
import { operatorOf } from '../operations/databases.ts'
import { eraseData, whyNotErased } from '../operations/erase.ts'
import { pluralize } from '../plainText.ts'
import { sayDone, skippedLines } from './selection.ts'
import { defineCommand } from './terminal/command.ts'
import { isConfirmed } from './terminal/confirm.ts'
import { createProgress, exit, usageError } from './terminal/context.ts'
import { actorOf, actorProblems, asOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: "erase a person's data from the ended records of a key",
  options: [
    ['--key <key>', "the records' key", { required: true }],
    ['--reason <text>', 'why; the log keeps it for ever, so do not name the person', { required: true }],
    asOption,
    ['--dry-run', 'say which records, and which not; change nothing'],
    ['--yes', 'do not ask'],
    ['--json', 'what was erased and what was not, as JSON'],
  ],
  help: `Erases payload, body, result, error and key, and what the log noted beside each step. Ids, types, states, times, amounts and the logs' chain stay:
outboxd audit shows the records without their key, and outboxd audit --verify still holds. There is no way back.
Only what is completed or discarded, and told to its row, is erased; the others are named, and the exit code is 1. Safe beside daemons, and to interrupt.
The rows of the outbox, logs, backups and the service's own data are not ours to erase: see docs/run/retention.md, "Erasure".

Examples:
  outboxd erase --key K-4711 --reason "request 2026-17 by the person" --dry-run
  outboxd erase --key K-4711 --reason "request 2026-17 by the person" --as "data protection officer"`,
  /** @returns 1 if some data had to stay, 3 if there is none, 4 if it was not confirmed */
  async action(context, options): Promise<number> {
    const { key = '', dryRun = false } = options
    const problems = actorProblems({ ...options, reason: options.reason ?? '' })
    if (key === '') problems.push('--key needs a key')
    if (options.reason !== undefined && key !== '' && options.reason.includes(key))
      problems.push('--reason has the key in it, and the log keeps reasons for ever: say it without')
    if (problems.length > 0) return usageError(context, problems)
    return withDatabases(context, async (databases) => {
      const records = await readRecordsOfKey(databases.ledger, key)
      if (records.length === 0) {
        context.stderr.write('There is no record of that key.\n')
        return exit.nothing
      }
      const erasable = records.filter((record) => whyNotErased(record) === null)
      const kept = records.flatMap((submission) => {
        const reason = whyNotErased(submission)
        return reason === null ? [] : [{ submission, reason }]
      })
      if (!options.json || !options.yes) context.stderr.write(preview(erasable, kept, records.length))
      const question = `Erase the data of ${pluralize(erasable.length, 'record')} for good?`
      if (erasable.length > 0 && !dryRun && !options.yes && !(await isConfirmed(context, question)))
        return exit.unconfirmed
      const operator = operatorOf(databases, actorOf(context, options))
      const onProgress = createProgress(context, (done: number) => `Erased ${done} of ${erasable.length} ...`)
      const run = { signal: context.signal, onProgress }
      const { done, skipped } = dryRun
        ? { done: erasable.map(({ id }) => id), skipped: [] }
        : await eraseData(operator, erasable, run)
      if (!options.json) context.stderr.write(skippedLines(skipped))
      return sayDone(context, eraseWords, { done, skipped: [...kept, ...skipped] }, options, 'the data of ')
    })
  },
})

const eraseWords = { verb: 'erase', did: 'erased' }

function preview(erasable: readonly KeyRecord[], kept: readonly Skipped[], found: number): string {
  const more = found === eraseMax ? ` (at most ${eraseMax} at once: run it again for the rest)` : ''
  return [
    `The data of ${pluralize(erasable.length, 'record')} may be erased${more}: payload, body, result, error, key, and what the log noted of them.\n`,
    skippedLines(kept),
  ].join('')
}
