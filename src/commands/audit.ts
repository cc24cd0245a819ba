import { once } from 'node:events'
import { systemClock } from '../clock.ts'
import type { ChainHead } from '../ledger/audit/chain.ts'
import { readAudit } from '../ledger/audit/readAudit.ts'
import { type ChainVerdict, verifyChain } from '../ledger/audit/verifyChain.ts'
import {
  type AuditLine,
  type AuditSum,
  type AuditSums,
  amountNames,
  auditCsv,
  auditCsvHead,
  auditJson,
  auditLine,
  auditText,
  createAuditSums,
  mappingsAtHand,
  sumsCsv,
  sumsText,
} from '../operations/audit.ts'
import { readSpan } from '../operations/filters.ts'
import { readRecordName } from '../operations/references.ts'
import { pluralize } from '../plainText.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, createProgress, exit, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'list each record with its amounts, times, outcome and what operators did',
  options: [
    ['--since <when>', 'what ended since then: a date, a time, or 2h, 3d, meaning ago'],
    ['--until <when>', 'what ended before then'],
    ['--key <key>', 'only records of this key'],
    ['--record <id>', "only this record: the submission's id, or outbox:N"],
    ['--type <type>', 'only records of this type, and no acts'],
    ['--containing <text>', 'only records with this text in payload, body or key, and no acts'],
    ['--sum', 'instead of lines: totals by month, type and outcome, with exact amounts'],
    ['--verify', 'instead: verify that the logs are unchanged, and print the head of their chain'],
    ['--noted <number:hash>', 'with --verify: an earlier head that the chain must still have'],
    ['--csv', 'as CSV, with the time of each step'],
    ['--json', 'as JSON: an array, an element a line'],
  ],
  help: `A record stands where it ended: each is in exactly one span, and what has not ended yet is in the one that has no end. Acts of persons that
are no step of one record (pause, resume, reload, adopt, prune, erase) stand among them, and so does who saw, searched or downloaded values in the console. With --key or --record
only the acts that name such a record are there, and those that saw more records than they name.
Amounts are the request's fields of a decimal type, each digit as it is sent; of a record that was never sent, as it would have been.
Of what retention has pruned only the outcome is known, and these come first; what was forgotten a year later is not there at all.
The CSV has a column amount_NAME for each amount of the mapping files, the request's customer (customerId) and its currency: EUR unless the request
names one. Both are empty once the contents are emptied. --containing does not find what was emptied.
--sum adds up each amount exactly, by the month (UTC) of the end, the type, the outcome and the currency; "without amounts" counts the records of which none is known.
Reads page by page, beside daemons: millions of records need no more memory than a hundred. Times are UTC.

--verify reckons the chain of all log entries anew and names the first that was changed, added or taken away. Whoever owns the database can write all of
it anew: note its head elsewhere (a daemon logs it each day), and give it with --noted. docs/run/operations.md says what that proves, and what not.

Examples:
  outboxd audit --since 2026-11-01 --until 2026-12-01 --csv > november.csv
  outboxd audit --key K-4711                    what became of one customer's records, and by whose hand
  outboxd audit --since 2026-01-01 --until 2027-01-01 --sum --csv     what was sent in a year, by month
  outboxd audit --verify --noted 4711:9f86d081…     a head from last month's log
  outboxd audit --since 7d --json | jq '.[] | select(.hands != [] or .kind == "act")'`,
  /** @returns 3 if there is nothing */
  async action(context, options): Promise<number> {
    const span = readSpan(options, systemClock.nowMs())
    const problems = span.kind === 'invalid' ? span.problems : []
    if (options.csv && options.json) problems.push('give --csv or --json, not both')
    const record = readRecordName(options.record, problems)
    if (options.noted !== undefined && !options.verify) problems.push('--noted goes with --verify')
    if (options.containing?.trim() === '') problems.push('--containing needs a text')
    const { key, type, containing, since, until, csv, sum } = options
    if (
      options.verify &&
      [key, options.record, type, containing, since, until, csv, sum].some((each) => each !== undefined)
    )
      problems.push('--verify looks at the whole chain: give it alone, or with --noted')
    if (problems.length > 0 || span.kind === 'invalid') return usageError(context, problems)
    if (options.verify) return verify(context, options)
    return withDatabases(context, async (databases, { mappingsDir }) => {
      const names = amountNames(mappingsAtHand(mappingsDir))
      const sums = createAuditSums()
      const form = sum ? sumForm(options, sums) : formOf(options, names)
      const counts = { record: 0, pruned: 0, act: 0 }
      const tell = createProgress(context, () => `${pluralize(counts.record + counts.pruned, 'record')} so far ...`)
      await write(context, form.head)
      const asked = { ...span.value, key: key ?? null, record, type: type ?? null, containing: containing ?? null }
      for await (const entry of readAudit(databases.ledger, asked)) {
        if (context.signal.aborted) break
        const isFirst = counts.record + counts.pruned + counts.act === 0
        await write(context, form.line(auditLine(entry), isFirst))
        counts[entry.kind] += 1
        tell()
      }
      await write(context, form.end())
      context.stderr.write(`${endMessage(counts, context.signal.aborted)}\n`)
      if (context.signal.aborted) return exit.failed
      return counts.record + counts.pruned + counts.act === 0 ? exit.nothing : exit.done
    })
  },
})

type AuditOptions = OptionsOf<typeof command>

interface Form {
  head: string
  line(line: AuditLine, isFirst: boolean): string
  end(): string
}

function formOf({ csv, json }: AuditOptions, names: readonly string[]): Form {
  const end = () => ''
  if (csv) return { head: auditCsvHead(names), line: (line) => auditCsv(line, names), end }
  if (!json) return { head: '', line: auditText, end }
  return {
    head: '[',
    line: (line, isFirst) => `${isFirst ? '' : ','}\n${JSON.stringify(auditJson(line))}`,
    end: () => '\n]\n',
  }
}

function sumForm({ csv, json }: AuditOptions, sums: AuditSums): Form {
  const show = csv ? sumsCsv : json ? (rows: AuditSum[]) => `${JSON.stringify(rows, null, 2)}\n` : sumsText
  return {
    head: '',
    line(line) {
      sums.add(line)
      return ''
    },
    end: () => show(sums.rows()),
  }
}

/** Waits for the reader of stdout, so that the output never piles up in memory. */
async function write({ stdout, signal }: CommandContext, text: string): Promise<void> {
  if (text === '' || stdout.write(text)) return
  await once(stdout, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

interface Counts {
  record: number
  pruned: number
  act: number
}

function endMessage({ record, pruned, act }: Counts, isInterrupted: boolean): string {
  const lost = pruned === 0 ? '' : `; of ${pluralize(pruned, 'pruned record')} only the outcome is known`
  return `${isInterrupted ? 'Interrupted after ' : ''}${pluralize(record, 'record')}, ${pluralize(act, 'act')} of persons beside them${lost}.`
}

/** @returns 1 if the chain is broken, 3 if there is no chain yet */
async function verify(context: CommandContext, options: AuditOptions): Promise<number> {
  const noted = options.noted === undefined ? null : readHead(options.noted)
  if (noted === undefined)
    return usageError(context, ['--noted takes a head as outboxd audit --verify prints it: NUMBER:HASH'])
  return withDatabases(context, async (databases) => {
    const tell = createProgress(
      context,
      ({ blocks, entries }: ChainVerdict) => `${pluralize(blocks, 'block')} with ${entries} entries so far ...`,
    )
    const verdict = await verifyChain(databases.ledger, noted, tell)
    if (options.json) printJson(context, verdict)
    else if (verdict.head !== null) context.stdout.write(`${verdict.head.number}:${verdict.head.hash}\n`)
    for (const line of messages(verdict, noted)) context.stderr.write(`${line}\n`)
    if (verdict.broken !== null) return exit.failed
    return verdict.head === null ? exit.nothing : exit.done
  })
}

/** Returns undefined if the text is not a head. */
function readHead(text: string): ChainHead | undefined {
  const [, number, hash] = /^(\d{1,18}):([0-9a-f]{64})$/.exec(text.trim()) ?? []
  return number === undefined || hash === undefined ? undefined : { number, hash }
}

function messages({ broken, head, blocks, entries, reduced, gone, waiting }: ChainVerdict, noted: ChainHead | null) {
  const not = waiting === 0 ? '' : ` ${waiting} written since are not in it yet.`
  if (broken !== null)
    return [`The chain is broken: ${broken}.`, 'What stands before it is as it was; nothing behind it was looked at.']
  if (head === null) return [`There is no chain yet.${not} A daemon makes it, within a minute.`]
  const less =
    reduced + gone === 0
      ? ''
      : `; of ${reduced} something was emptied or erased, and ${gone} more went with pruned records`
  return [
    `The chain holds: ${pluralize(blocks, 'block')}, ${entries} entries as they were written${less}.${not}`,
    noted === null
      ? 'Note its head, above, where whoever owns the database cannot write: --noted then proves that nothing before it was written anew.'
      : `It has the head that was noted (block ${noted.number}).`,
  ]
}
