import { once } from 'node:events'
import { systemClock } from '../clock.ts'
import { type AuditEntry, readAuditEntries } from '../ledger/audit/readAuditEntries.ts'
import {
  type AuditSum,
  type AuditSums,
  addToAuditSums,
  auditCsvHeaderLine,
  auditLineCsv,
  auditLineJson,
  auditLineText,
  auditSumsCsv,
  auditSumsText,
  isByWho,
  sortAuditSums,
  tryReadAmountFieldNames,
} from '../operations/audit.ts'
import { parseTimeSpan } from '../operations/filters.ts'
import { parseRecordOption } from '../operations/references.ts'
import { pluralize } from '../plainText.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, createProgressPrinter, exitCodes, printUsageErrors } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'list each record with its amounts, times, outcome and what operators did',
  options: [
    ['--since <when>', 'records that ended since this date or time; 2h: two hours ago'],
    ['--until <when>', 'records that ended before this date or time'],
    ['--key <key>', 'only records of this key, and what operators did to them'],
    ['--record <id>', 'only this record: its id, or outbox:N'],
    ['--type <type>', 'only records of this type'],
    ['--containing <text>', 'only records with this text in payload, body or key'],
    ['--who <name>', 'only acts of operators with this part of a name, and the records on which they acted'],
    ['--sum', 'print exact totals by month, type and outcome instead'],
    ['--csv', 'print CSV, with the time of each step'],
    ['--json', 'print a JSON array, one element a line'],
  ],
  help: `Records are listed in the order in which they ended; those that have not ended come last. Operators'
acts (pause, resume, adopt, recover, prune, erase) and who looked at values in the console are listed among them; with --key
or --record also looks at more records than the log names.
Amounts are the decimal fields of the request, each digit as sent. The CSV has a
column amount_NAME for each amount, and columns for the customer and the currency: EUR, unless the request or its data names
another. If it names several, or only an inner part names one, all that are possible stand there, such as EUR+USD.

Dates and times without an offset are in UTC. --sum adds up amounts exactly, by month (UTC), type, outcome and currency. Amounts
that may be of several currencies, as of erased records, are counted and not added.

In CSV cells control characters are written like \\u000a, and an apostrophe stands before = + - @ where a spreadsheet would
calculate. So take exact keys from --json.

Examples:
  outboxd audit --since 2026-11-01 --until 2026-12-01 --csv > november.csv
  outboxd audit --key K-4711                        one customer's records, and who acted on them
  outboxd audit --since 2026-01-01 --until 2027-01-01 --sum --csv
  outboxd audit --since 7d --json | jq '.[] | select(.hands != [] or .kind == "act")'`,
  async action(context, options): Promise<number> {
    const problems: string[] = []
    const span = parseTimeSpan(options, systemClock.nowMs(), problems)
    if (options.csv && options.json) problems.push('give --csv or --json, not both')
    const record = parseRecordOption(options.record, problems)
    if (options.containing?.trim() === '') problems.push('--containing needs a text, such as --containing PO-4711')
    const { key, type, containing, who, sum } = options
    if (problems.length > 0) return printUsageErrors(context, problems)
    return withDatabases(context, async (databases, { mappingsDir }) => {
      const form = sum ? sumForm(options) : formOf(options, tryReadAmountFieldNames(mappingsDir))
      const counts = { record: 0, act: 0, lines: 0 }
      const showProgress = createProgressPrinter(context, () => `Listed ${pluralize(counts.record, 'record')} so far …`)
      await write(context, form.head)
      const asked = { ...span, key: key ?? null, record, type: type ?? null, containing: containing ?? null }
      for await (const line of readAuditEntries(databases.ledger, asked)) {
        if (context.signal.aborted) break
        if (who !== undefined && !isByWho(line, who)) continue
        await write(context, form.line(line, counts.lines === 0))
        counts.lines += 1
        counts.record += line.kind === 'record' ? 1 : 0
        counts.act += line.kind === 'record' ? line.hands.length : 1
        showProgress()
      }
      await write(context, form.end())
      const isInterrupted = context.signal.aborted
      context.stderr.write(
        `${isInterrupted ? 'Interrupted after ' : ''}${pluralize(counts.record, 'record')}, ${pluralize(counts.act, 'act')} of operators.\n`,
      )
      if (isInterrupted) return exitCodes.failed
      return counts.lines === 0 ? exitCodes.nothing : exitCodes.done
    })
  },
})

type AuditOptions = OptionsOf<typeof command>

interface Form {
  head: string
  line(line: AuditEntry, isFirst: boolean): string
  end(): string
}

function formOf({ csv, json }: AuditOptions, names: readonly string[]): Form {
  const end = () => ''
  if (csv) return { head: auditCsvHeaderLine(names), line: (line) => auditLineCsv(line, names), end }
  if (!json) return { head: '', line: auditLineText, end }
  return {
    head: '[',
    line: (line, isFirst) => `${isFirst ? '' : ','}\n${JSON.stringify(auditLineJson(line))}`,
    end: () => '\n]\n',
  }
}

function sumForm({ csv, json }: AuditOptions): Form {
  const sums: AuditSums = new Map()
  const showText = json ? (rows: AuditSum[]) => `${JSON.stringify(rows, null, 2)}\n` : auditSumsText
  const show = csv ? auditSumsCsv : showText
  return {
    head: '',
    line(line) {
      addToAuditSums(sums, line)
      return ''
    },
    end: () => show(sortAuditSums(sums)),
  }
}

/** Waits, so that output does not fill the memory. */
async function write({ stdout, signal }: CommandContext, text: string): Promise<void> {
  if (text === '' || stdout.write(text)) return
  await once(stdout, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}
