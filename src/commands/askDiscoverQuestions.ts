import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { DiscoverConfig } from '../config.ts'
import { ConfigInvalid } from '../createVariableReader.ts'
import { type AnsweredQuestion, askQuestions, type QuestionPlan } from '../discover/askQuestions.ts'
import { QuestionContext } from '../discover/questionContext.ts'
import { describeSideObservations } from '../discover/report.ts'
import { InMemoryRequests, type RequestClaimer } from '../discover/sender.ts'
import { CommandRequests, historyDiffersMessage } from '../ledger/commandRequests.ts'
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
  await using counted = countsInMemory ? null : await openCommandRequests(config)
  if (!countsInMemory && counted === null)
    context.stderr.write('The database has no budget yet, so no daemon uses one: requests are counted in memory.\n')
  const claimer: RequestClaimer =
    counted === null
      ? new InMemoryRequests(config.rateLimit, nowMs)
      : { claim: (isBeyondLimit) => claimUnlessPaused(counted, isBeyondLimit) }
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
    claimer,
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
async function openCommandRequests({ databaseUrl, service }: DiscoverConfig): Promise<CommandRequests | null> {
  const instead = 'If no daemon runs with these credentials, give --no-ledger'
  if (databaseUrl === null)
    throw new ConfigInvalid([
      `DATABASE_URL names no ledger, whose budget discover shares with the daemon: set it. ${instead}`,
    ])
  const requests = new CommandRequests(databaseUrl, { name: 'outboxd discover', ...service })
  try {
    if (await requests.hasLimit()) return requests
    await requests[Symbol.asyncDispose]()
    return null
  } catch (error) {
    await requests[Symbol.asyncDispose]()
    const problem = error instanceof Error ? error.message : String(error)
    throw new Error(
      `the ledger cannot be read (${problem}), and discover shares its budget with the daemon: fix DATABASE_URL. ${instead}`,
      { cause: error },
    )
  }
}

async function claimUnlessPaused(requests: CommandRequests, isBeyondLimit: boolean) {
  const pause = await requests.readPause()
  if (pause !== null) return { kind: 'paused' as const, ...pause }
  const claimed = await requests.claim(isBeyondLimit ? 'exceed' : 'give-up')
  if (claimed.kind !== 'history-differs') return claimed
  return { kind: 'paused' as const, reason: 'history', detail: historyDiffersMessage }
}
