import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { DiscoverConfig } from '../config.ts'
import { ConfigInvalid } from '../createVariableReader.ts'
import { type AnsweredQuestion, askQuestions, type QuestionPlan } from '../discover/askQuestions.ts'
import { QuestionContext } from '../discover/questionContext.ts'
import { describeSideObservations } from '../discover/report.ts'
import { createInMemorySlots, type Slots } from '../discover/sender.ts'
import { type CommandSlots, openCommandSlots } from '../ledger/slotLoans.ts'
import { createHttpClient } from '../service/http.ts'
import type { CommandContext } from './terminal/context.ts'

interface Asking {
  config: DiscoverConfig
  plan: QuestionPlan
  budget: number
  countsInMemory: boolean
  onAnswered(answered: AnsweredQuestion): void
}

export async function askDiscoverQuestions(
  context: CommandContext,
  { config, plan, budget, countsInMemory, onAnswered }: Asking,
) {
  const { signal } = context
  const { service } = config
  const { nowMs } = systemClock
  await using lender = countsInMemory ? null : await openLedgerSlots(config)
  if (!countsInMemory && lender === null)
    context.stderr.write('The database has no budget yet, so no daemon uses one: requests are counted in memory.\n')
  const slots: Slots = lender ?? createInMemorySlots(config.rateLimit, nowMs)
  const http = createHttpClient({
    clock: systemClock,
    timeoutMs: service.requestTimeoutMs,
    connections: 25, // rate-second sends 25 requests at once
    answerMaxBytes: service.answerMaxBytes,
    settings: () => service,
    onCertificate() {},
  })
  const parts = new QuestionContext({
    config,
    given: plan.given,
    run: randomBytes(4).toString('hex'),
    http,
    slots,
    budget,
    nowMs,
    waitMs: (ms) => wait(ms, undefined, { signal }).catch(() => {}),
    signal,
  })
  try {
    const answered = await askQuestions(plan, parts, onAnswered)
    const { exchanges, requests, throttles } = parts.sender
    return { answered, exchanges, requests, seen: describeSideObservations(exchanges, throttles) }
  } finally {
    await http.close()
  }
}

/**
 * @returns null if the database has no budget yet
 * @throws ConfigInvalid
 */
async function openLedgerSlots({ databaseUrl, rateLimit, service }: DiscoverConfig): Promise<CommandSlots | null> {
  const instead = 'If no daemon runs with these credentials, give --no-ledger'
  if (databaseUrl === null)
    throw new ConfigInvalid([
      `DATABASE_URL names no ledger, whose budget discover shares with the daemon: set it. ${instead}`,
    ])
  const { windowMs } = rateLimit
  const { requestTimeoutMs } = service
  try {
    return await openCommandSlots(databaseUrl, { windowMs, requestTimeoutMs, stopwatch: systemClock.stopwatch })
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new Error(
      `the ledger cannot be read (${problem}), and discover shares its budget with the daemon: fix DATABASE_URL. ${instead}`,
      { cause: error },
    )
  }
}
