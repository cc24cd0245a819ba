import type pg from 'pg'
import type { Clients } from './clients.ts'
import type { Endpoint } from './endpoints/apiSchemas.ts'
import type { Answer } from './endpoints/problemAnswer.ts'
import type { FaultAction, Faults } from './faults/faults.ts'
import type { ClientRateLimits } from './gate/clientRateLimits.ts'
import type { IssuedTokens } from './gate/issuedTokens.ts'
import type { SeededRandom } from './processing/seededRandom.ts'
import type { SandboxClock } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import type { RecordScripts } from './scenario/recordScripts.ts'
import type { OrderEvents } from './storage/orderEvents.ts'
import type { Effect } from './storage/writeRequest.ts'

export interface Parts {
  pool: pg.Pool
  events: OrderEvents
  clock: SandboxClock
  live: (client: string | null) => LiveSettings
  clients: Clients
  bodyLimitBytes: number
  tokens: IssuedTokens
  rates: ClientRateLimits
  faults: Faults
  scripts: RecordScripts
  random: SeededRandom
  /** Whatever reads or changes what is stored goes through it, so that no two requests apply the same thing. */
  oneAtATime: OneAtATime
  /** Requests that the database did not answer. */
  outages: { count: number }
  /** Aborted when the sandbox closes, which ends all delays. */
  closing: AbortSignal
}

export interface Exchange {
  endpoint: Endpoint | 'other'
  method: string
  /** Without its query. */
  path: string
  id: string
  address: string
  authorization: string | undefined
  contentType: string
  header(name: string): string | undefined
  /** From the headers of the setting idempotencyHeaders. */
  idempotencyKey: string | null
  body: string
  maskedBody: string
  /** If false, `body` has U+FFFD for invalid bytes. */
  isUtf8: boolean
}

export type Arrival = Omit<Exchange, 'idempotencyKey'>

export interface Admission {
  arrivedUs: number
  client: string | null
  counted: boolean
  headers: Record<string, string>
  /** Takes the request out of the count. @returns the changed headers */
  ifItFails?: () => Record<string, string>
  refusal: Answer | undefined
}

export interface Outcome {
  answer: Answer
  effect?: Effect
  fault?: FaultAction | undefined
}

export type Gate = (parts: Parts, exchange: Arrival) => Promise<Admission>
export type Handler = (parts: Parts, exchange: Exchange, client: string) => Promise<Outcome>

type OneAtATime = <T>(act: () => Promise<T>) => Promise<T>

/** Runs functions in the order of the calls, each after the one before has ended. */
export function createSequentialRunner(): OneAtATime {
  let before: Promise<unknown> = Promise.resolve()
  return (act) => {
    const result = before.then(act)
    before = result.catch(() => {})
    return result
  }
}
