import { erasedRecordsMax, eraseRecords, type RecordOfKey, readRecordsOfKey } from '../ledger/operator/decisions.ts'
import { isFinalState } from '../model/submission.ts'
import { carryOutInBatches, listSkippedAsChanged, type SkippedRecord } from '../operations/bulkChange.ts'
import { pluralize } from '../plainText.ts'
import { printChangeResult, renderSkippedRecords } from './selection.ts'
import { defineCommand } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { createProgressPrinter, exitCodes } from './terminal/context.ts'
import { changeOptions, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: "erase a person's data from the ended records of a key",
  options: [
    ['--key <key>', "the records' key", { required: true }],
    ['--reason <text>', 'why; do not name the person, because the log keeps it for ever', { required: true }],
    ...changeOptions,
  ],
  help: `Erases payload, body, result, error and key, and what the log noted with each step. Ids, types, states, times and amounts stay.
Erased data cannot be brought back. Only completed and discarded records are erased. If the key has other records, the command
lists them and exits with 1. Outbox rows, logs and backups you erase yourself: see docs/run/retention.md, "Erasure".

Examples:
  outboxd erase --key K-4711 --reason "request 2026-17 by the person" --dry-run
  outboxd erase --key K-4711 --reason "request 2026-17 by the person" --as "data protection officer"`,
  async action(context, options): Promise<number> {
    const { key = '', reason = '', dryRun = false } = options
    const problems: string[] = []
    if (key === '') problems.push('--key needs a key, such as --key K-4711')
    else if (reason.includes(key))
      problems.push('--reason contains the key, and the log keeps reasons for ever: leave the key out')
    return withOperator(context, { ...options, reason }, problems, async ({ ledger }, operator) => {
      const records = await readRecordsOfKey(ledger, key)
      if (records.length === 0) {
        context.stderr.write('There is no record with that key.\n')
        return exitCodes.nothing
      }
      const erasable = records.filter((record) => whyNotErased(record) === null)
      const kept = records.flatMap((submission) => {
        const reason = whyNotErased(submission)
        return reason === null ? [] : [{ submission, reason }]
      })
      if (!options.json || !options.yes) context.stderr.write(preview(erasable, kept, records.length))
      const question = `Erase the data of ${pluralize(erasable.length, 'record')} for good?`
      if (erasable.length > 0 && !dryRun && !options.yes && !(await askForConfirmation(context, question)))
        return exitCodes.unconfirmed
      let erasedCount = 0
      const showProgress = createProgressPrinter(context, () => `Erased ${erasedCount} of ${erasable.length} …`)
      const { done, skipped, failure } = dryRun
        ? { done: erasable.map(({ id }) => id), skipped: [], failure: undefined }
        : await carryOutInBatches(erasable, batchSize, { signal: context.signal }, async (batch) => {
            const erased = new Set(await eraseRecords(operator, batch))
            erasedCount += erased.size
            showProgress()
            return { done: [...erased], skipped: listSkippedAsChanged(batch, erased) }
          })
      if (!options.json) context.stderr.write(renderSkippedRecords(skipped))
      const changed = { done, skipped: [...kept, ...skipped] }
      const exitCode = printChangeResult(context, eraseWords, changed, options, 'the data of ')
      if (failure !== undefined) throw failure
      return exitCode
    })
  },
})

const batchSize = 100

const eraseWords = { verb: 'erase', did: 'erased' }

function preview(erasable: readonly RecordOfKey[], kept: readonly SkippedRecord[], found: number): string {
  const more =
    found === erasedRecordsMax ? ` (at most ${erasedRecordsMax} at once: run the command again for the rest)` : ''
  return [
    `Would erase the data of ${pluralize(erasable.length, 'record')}${more}: payload, body, result, error, key, and what the log noted with each step.\n`,
    renderSkippedRecords(kept),
  ].join('')
}

function whyNotErased({ mayBeErased, state, reportDue }: RecordOfKey): string | null {
  if (mayBeErased) return null
  if (isFinalState(state))
    return reportDue ? `is ${state}, but its outbox row does not say so yet: try again later` : `is ${state}`
  if (state === 'failed' || state === 'rejected' || state === 'uncertain')
    return `is ${state} and needs attention: ${state === 'uncertain' ? 'resolve' : 'replay'} or discard it first`
  return `is ${state} and has not ended: try again later`
}
