import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { StoreConfig } from '../config.ts'
import type { Databases } from '../operations/databases.ts'
import { joinStatusHalves, type StatusReport } from '../operations/diagnose.ts'
import { explainError } from '../operations/explainError.ts'
import {
  ledgerStatusReads,
  type OutboxHalf,
  outboxStatusReads,
  readLedgerHalf,
  readOutboxHalf,
} from '../operations/readStatus.ts'
import { renderLedgerHalf, renderOutboxHalf, renderStatus } from '../operations/renderStatus.ts'
import { escapeLines } from '../plainText.ts'
import { parseDurationMs } from '../time.ts'
import { defineCommand } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'
import { createStatusView, statusJson } from './terminal/statusView.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'show whether all is well: states, budget, pauses, the oldest unsent record, the backlog',
  options: [
    ['--json', 'print JSON; with --watch one document a line'],
    ['--watch', 'repeat until Ctrl-C; redraws a terminal, otherwise appends a line'],
    ['--every <duration>', 'refresh interval for --watch (default: 2s)'],
  ],
  help: `The first line says whether all is well, or what is wrong and which command to run. The exit code is 0 either way, and 1 if a
database cannot be read.

Examples:
  outboxd status --watch                       # on a terminal
  outboxd status --watch --every 1m >> log     # a line a minute
  outboxd status --json --watch | jq .backlog`,
  async action(context, options): Promise<number> {
    const everyMs = options.every === undefined ? usualEveryMs : parseDurationMs(options.every)
    if (!everyMs) return usageError(context, [`--every ${options.every}: give a duration such as 2s or 1m`])
    if (options.every !== undefined && !options.watch)
      return usageError(context, ['--every needs --watch, such as: outboxd status --watch --every 1m'])
    return withDatabases(context, (databases, config) =>
      options.watch
        ? watch(context, { databases, config, everyMs, json: options.json ?? false })
        : look(context, databases, config, options.json ?? false),
    )
  },
})

const usualEveryMs = 2_000

/** Prints the ledger's half first if the outbox takes longer. */
const patienceMs = 1_000

async function look(
  context: CommandContext,
  databases: Databases,
  config: StoreConfig,
  json: boolean,
): Promise<number> {
  const asking = readOutboxHalf(outboxStatusReads(databases))
  const ledger = await readLedgerHalf(ledgerStatusReads(databases))
  if (json) {
    const report = joinStatusHalves(ledger, await asking, config)
    printJson(context, statusJson(report))
    return conclude(context, report)
  }
  const awaited: OutboxHalf = { kind: 'awaited' }
  const first = joinStatusHalves(
    ledger,
    await Promise.race([asking, setTimeout(patienceMs, awaited, { ref: false })]),
    config,
  )
  if (first.outbox.kind !== 'awaited') {
    context.stdout.write(renderStatus(first))
    return conclude(context, first)
  }
  context.stdout.write(renderLedgerHalf(first))
  const report = joinStatusHalves(ledger, await asking, config)
  context.stdout.write(renderOutboxHalf(report, first))
  return conclude(context, report)
}

function conclude({ stderr }: CommandContext, { outbox }: StatusReport): number {
  if (outbox.kind === 'unreadable') stderr.write(`outboxd: ${escapeLines(outbox.problem)}\n`)
  return outbox.kind === 'read' ? exitCodes.done : exitCodes.failed
}

interface Watch {
  databases: Databases
  config: StoreConfig
  everyMs: number
  json: boolean
}

/** Repeats until the command is ended. A database that cannot be reached is tried again. */
async function watch(context: CommandContext, { databases, config, everyMs, json }: Watch): Promise<number> {
  const { signal, stdout } = context
  const view = createStatusView(stdout, { json, everyMs })
  const ended = once(signal, 'abort')
  const lookOnce = async () => {
    const asking = readOutboxHalf(outboxStatusReads(databases))
    const report = joinStatusHalves(await readLedgerHalf(ledgerStatusReads(databases)), await asking, config)
    if (!signal.aborted) view.show(report)
  }
  while (!signal.aborted) {
    const looked = lookOnce().catch((error: unknown) => {
      if (!signal.aborted) view.failed(explainError(error).message, systemClock.nowMs())
    })
    await Promise.race([looked, ended])
    await Promise.race([setTimeout(everyMs, undefined, { signal }).catch(() => {}), ended])
  }
  return exitCodes.done
}
