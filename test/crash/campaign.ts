import { setTimeout as after } from 'node:timers/promises'
import { type Arena, openArena } from './arena.ts'
import { createDice } from './dice.ts'
import { installErpFaults } from './erpFaults.ts'
import { type Evidence, gatherEvidence } from './evidence.ts'
import { launchFleet } from './fleet.ts'
import { type Havoc, makeHavoc, operate, type Pace } from './havoc.ts'
import { ledgerFaults } from './ledgerFaults.ts'
import { copyProgram } from './programCopy.ts'
import { type SabotageName, sabotages } from './sabotage.ts'
import { serviceFaults } from './serviceFaults.ts'
import { type Violation, verify } from './verify.ts'

export interface CampaignOptions {
  kills: number
  seed: number
  sabotage: SabotageName | null
  daemons: number
  pace: Pace
  say(text: string): void
  /** Ends the campaign early, by an error, with everything it started put away. */
  signal: AbortSignal
}

export interface CampaignResult {
  options: CampaignOptions
  idempotency: 'ignore' | 'e002'
  seconds: number
  havoc: Havoc
  failedStarts: number
  evidence: Evidence
  violations: Violation[]
}

/** Longer than takeover, its judge's probation, the longest pause and a drain of what is left. */
const drainMostMs = 240_000

/**
 * Lets several daemons carry records from one ledger while they are killed and stopped, their database crashes and the
 * service misbehaves; then lets them finish in peace, and compares what the outbox, the ledger and the service say.
 */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { seed, kills, pace, say } = options
  const sabotage = options.sabotage === null ? null : sabotages[options.sabotage]
  // Two seeds of three show what was sent twice as two effects; the third tries what E002 is taken for.
  const idempotency = sabotage?.idempotency ?? (seed % 3 === 0 ? 'e002' : 'ignore')
  const begun = performance.now()
  await using program = await copyProgram(sabotage?.patches ?? [])
  await using arena = await openArena(program, { idempotency, seed })
  const fleet = launchFleet({ ...program, env: arena.env, size: options.daemons })
  try {
    const dice = (name: string) => createDice(seed, name)
    const faults = serviceFaults(arena.sandboxUrl, dice('service'), idempotency)
    const erp = await installErpFaults(arena.outbox, arena.config.databaseUrl)
    const ledger = ledgerFaults(arena.ledger)
    const havoc = await makeHavoc(
      { arena, fleet, faults, erp, ledger, dice },
      { kills, pace, say, signal: options.signal },
    )
    say(`havoc is over after ${Math.round((performance.now() - begun) / 1000)} s; waiting for every record's end`)
    const left = await drain(arena, havoc, options.signal)
    const codes = await fleet.terminate()
    const evidence = await gatherEvidence(arena, havoc.written)
    const violations = [
      ...left.map(inWords),
      ...fleet.deserters.map((words) => inWords(`a daemon left by itself, ${words}`)),
      ...codes.filter((code) => code !== 0).map((code) => inWords(`a daemon left with ${code} after SIGTERM`)),
      ...verify(evidence),
    ]
    const seconds = Math.round((performance.now() - begun) / 1000)
    return { options, idempotency, seconds, havoc, failedStarts: fleet.failedStarts(), evidence, violations }
  } finally {
    fleet.scuttle()
  }
}

const inWords = (what: string): Violation => ({ what, case: null })

/** Waits until nothing is left to do. @returns what is left all the same, in words */
async function drain(arena: Arena, havoc: Havoc, signal: AbortSignal): Promise<string[]> {
  const ownDeadline = performance.now() + drainMostMs
  for (;;) {
    signal.throwIfAborted()
    await operate(arena, havoc, { resume: true })
    const { rows: unread } = await arena.outbox.query(`select count(*)::int as n from outbox where status = 'new'`)
    const { rows: unfinished } = await arena.ledger.query(
      `select count(*)::int as n from outboxd.submission
       where state in ('queued', 'sending', 'accepted') or report_due or (state = 'uncertain' and key is not null)`,
    )
    if (unread[0].n + unfinished[0].n === 0) return []
    if (performance.now() > ownDeadline)
      return [`after ${drainMostMs / 1000} s of peace, ${unread[0].n} rows are new and ${unfinished[0].n} unfinished`]
    await after(500)
  }
}
