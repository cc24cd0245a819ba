import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { DiscoverConfig } from '../config.ts'
import { type Answered, askQuestions, type Plan } from '../discover/askQuestions.ts'
import { createQuestionParts } from '../discover/createQuestionParts.ts'
import { describeSideObservations } from '../discover/describeSideObservations.ts'
import type { Given } from '../discover/question.ts'
import { createInMemorySlots, type Slots, type SlotTaken } from '../discover/slots.ts'
import { type LentSlot, openSlotLender, type SlotLender } from '../ledger/slotLoans.ts'
import { ConfigInvalid } from '../readVariables.ts'
import { createHttp } from '../service/http.ts'
import { showDuration } from '../time.ts'
import type { CommandContext } from './terminal/context.ts'

interface Asking {
  config: DiscoverConfig
  given: Given
  plan: Plan
  budget: number
  ownCount: boolean
  onAnswered(answered: Answered): void
}

export async function askDiscoverQuestions(
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
    connections: 20, // rate-second sends that many at once
    answerMaxBytes: service.answerMaxBytes,
    settings: () => service,
    onCertificate() {},
  })
  const run = randomBytes(4).toString('hex')
  const owned = createQuestionParts({
    config,
    given,
    run,
    http,
    slots,
    budget,
    nowMs,
    waitMs,
    signal,
  })
  try {
    const answered = await askQuestions(plan, owned, onAnswered)
    const exchanges = owned.sender.exchanges
    return {
      answered,
      exchanges,
      requests: owned.sender.requests,
      seen: describeSideObservations(exchanges, owned.sender.throttles),
    }
  } finally {
    await http.close()
  }
}

interface Options {
  config: DiscoverConfig
  ownCount: boolean
  nowMs(): number
  waitMs(ms: number): Promise<void>
}

const againMs = 500

/** Opens the ledger's budget; counts in memory if the database has no ledger. @throws ConfigInvalid */
export async function openDiscoverSlots(
  context: CommandContext,
  { config, ownCount, nowMs, waitMs }: Options,
): Promise<Slots & AsyncDisposable> {
  const { rateLimit, service, stateDatabaseUrl: url } = config
  const own = { ...createInMemorySlots({ ...rateLimit, nowMs, waitMs }), async [Symbol.asyncDispose]() {} }
  if (ownCount) return own
  if (url === null)
    throw new ConfigInvalid([
      'neither STATE_DATABASE_URL nor DATABASE_URL names the ledger, whose budget discover shares with the daemon: set one. If no daemon runs with these credentials, give --no-ledger',
    ])
  const lender = await open(url, { windowMs: rateLimit.windowMs, requestTimeoutMs: service.requestTimeoutMs })
  if (lender === null) {
    context.stderr.write('The database has no budget yet, so no daemon uses one: requests are counted in memory.\n')
    return own
  }
  const patienceMs = 2 * rateLimit.windowMs
  return {
    take: () => takeFrom(lender, { patienceMs, waitMs, signal: context.signal }),
    async takeNow() {
      const lent = await lender.take()
      return lent.kind === 'none-free' ? null : taken(lent)
    },
    [Symbol.asyncDispose]: () => lender[Symbol.asyncDispose](),
  }
}

async function open(url: string, limits: { windowMs: number; requestTimeoutMs: number }): Promise<SlotLender | null> {
  try {
    return await openSlotLender(url, { ...limits, stopwatch: systemClock.stopwatch })
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new Error(
      `the ledger cannot be read (${problem}), and discover shares its budget with the daemon: fix STATE_DATABASE_URL. If no daemon runs with these credentials, give --no-ledger`,
      { cause: error },
    )
  }
}

interface Patience {
  patienceMs: number
  waitMs(ms: number): Promise<void>
  signal: AbortSignal
}

async function takeFrom(lender: SlotLender, { patienceMs, waitMs, signal }: Patience): Promise<SlotTaken> {
  const ageMs = systemClock.stopwatch()
  for (;;) {
    const lent = await lender.take()
    if (lent.kind !== 'none-free') return taken(lent)
    if (ageMs() > patienceMs || signal.aborted)
      return {
        kind: 'none',
        why: `no slot of the budget was free for ${showDuration(patienceMs)}: a daemon uses them`,
      }
    await waitMs(againMs)
  }
}

function taken(lent: Exclude<LentSlot, { kind: 'none-free' }>): SlotTaken {
  if (lent.kind === 'slot') return lent
  const why = `sending is paused (${lent.reason}): ${lent.detail}. See \`outboxd status\``
  return { kind: 'none', why }
}
