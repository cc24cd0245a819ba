import type pg from 'pg'
import type { ClientLookup } from './clients.ts'
import type { Endpoint } from './endpoints/endpoints.ts'
import type { Answer } from './endpoints/problemAnswer.ts'
import type { FaultAction, FaultStore } from './faults/faults.ts'
import type { ClientRateLimits } from './gate/clientRateLimits.ts'
import type { TokenIssuer } from './gate/tokenIssuer.ts'
import type { SeededRandom } from './processing/seededRandom.ts'
import type { SandboxClock } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import type { ScriptRunner } from './scenario/recordScripts.ts'
import type { OrderEventQueue } from './storage/orderEvents.ts'
import type { Effect } from './storage/writeRequest.ts'

export interface SandboxParts {
  pool: pg.Pool
  events: OrderEventQueue
  clock: SandboxClock
  liveSettingsOf: (client: string | null) => LiveSettings
  clients: ClientLookup
  bodyLimitBytes: number
  tokens: TokenIssuer
  rateLimits: ClientRateLimits
  faults: FaultStore
  scripts: ScriptRunner
  random: SeededRandom
  /** Runs the handlers one after the other, so that two equal requests cannot both create the record. */
  oneAtATime: OneAtATime
  databaseFailures: { count: number }
  /** Aborted when the sandbox closes, so that all delays end. */
  closing: AbortSignal
}

export interface Arrival {
  endpoint: Endpoint | 'other'
  method: string
  /** The path without the query. */
  path: string
  id: string
  address: string
  authorization: string | undefined
  contentType: string
  header(name: string): string | undefined
  body: string
  maskedBody: string
  /** If false, `body` has U+FFFD for invalid bytes. */
  isUtf8: boolean
}

/** A request after the gate. */
export interface Exchange extends Arrival {
  /** Empty if the client is unknown. */
  client: string
  /** Value of the first header present of those in the setting `idempotencyHeaders`. */
  idempotencyKey: string | null
}

export interface Admission {
  arrivedUs: number
  client: string | null
  counted: boolean
  headers: Record<string, string>
  /** @returns the changed headers */
  uncountFailedRequest?: () => Record<string, string>
  refusal: Answer | undefined
}

export interface Outcome {
  answer: Answer
  effect?: Effect
  fault?: FaultAction | undefined
}

export type Gate = (parts: SandboxParts, exchange: Arrival) => Promise<Admission>
export type Handler = (parts: SandboxParts, exchange: Exchange) => Promise<Outcome>

type OneAtATime = <T>(act: () => Promise<T>) => Promise<T>

export function createSequentialRunner(): OneAtATime {
  let before: Promise<unknown> = Promise.resolve()
  return (act) => {
    const result = before.then(act)
    before = result.catch(() => {})
    return result
  }
}
