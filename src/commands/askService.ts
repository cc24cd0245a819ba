import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { DiscoverConfig } from '../config.ts'
import { type Answered, askQuestions, type Plan } from '../discover/askQuestions.ts'
import { lookAtConnection } from '../discover/connection.ts'
import { createParts } from '../discover/createParts.ts'
import type { Given } from '../discover/question.ts'
import { createHttp } from '../service/http.ts'
import { openDiscoverSlots } from './discoverSlots.ts'
import type { CommandContext } from './terminal/context.ts'

interface Asking {
  config: DiscoverConfig
  given: Given
  plan: Plan
  budget: number
  /** Count in memory, whatever a daemon spends. */
  ownCount: boolean
  onAnswered(answered: Answered): void
}

/** Asks what a plan has, paid for from the ledger's budget or counted in memory. */
export async function askService(
  context: CommandContext,
  { config, given, plan, budget, ownCount, onAnswered }: Asking,
) {
  const { signal } = context
  const { service } = config
  const waitMs = (ms: number) => wait(ms, undefined, { signal }).catch(() => {})
  const nowMs = systemClock.nowMs
  await using slots = await openDiscoverSlots(context, { config, ownCount, nowMs, waitMs })
  const http = createHttp({
    clock: systemClock,
    timeoutMs: service.requestTimeoutMs,
    connections: 1,
    answerMaxBytes: service.answerMaxBytes,
    settings: () => service,
    onCertificate() {},
  })
  const run = randomBytes(4).toString('hex')
  const owned = createParts({
    config,
    given,
    run,
    http,
    connect: (look) => lookAtConnection(config, look),
    slots,
    budget,
    nowMs,
    waitMs,
    signal,
  })
  try {
    const answered = await askQuestions(plan, owned, onAnswered)
    return { answered, exchanges: owned.parts.exchanges(), requests: owned.requests() }
  } finally {
    await http.close()
  }
}
