import type pg from 'pg'
import type { Clients } from './clients.ts'
import type { Answer } from './endpoints/problemAnswer.ts'
import type { Endpoint } from './endpoints/requestSchemas.ts'
import type { FaultAction, Faults } from './faults/faults.ts'
import type { ClientRates } from './gate/clientRates.ts'
import type { Tokens } from './gate/issuedTokens.ts'
import type { SeededRandom } from './processing/seededRandom.ts'
import type { SandboxClock } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import type { RecordScripts } from './scenario/recordScripts.ts'
import type { Effect, Journal } from './storage/journal.ts'
import type { KeyedMutex } from './storage/keyedMutex.ts'
import type { Outage } from './storage/sandboxDatabase.ts'

export interface Parts {
  pool: pg.Pool
  clock: SandboxClock
  live: (client: string | null) => LiveSettings
  clients: Clients
  bodyLimitBytes: number
  tokens: Tokens
  rates: ClientRates
  faults: Faults
  scripts: RecordScripts
  journal: Journal
  outage: Outage
  mutex: KeyedMutex
  random: SeededRandom
  /** Aborted when the sandbox closes, which ends all delays. */
  closing: AbortSignal
}

export interface Exchange {
  arrivedUs: number
  endpoint: Endpoint | 'other'
  method: string
  /** Without its query; masked if no endpoint has it. */
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
  /** Takes the lock `name` until this request is in the ledger. */
  lock(name: string): Promise<void>
}

export type Arrival = Omit<Exchange, 'idempotencyKey'>

export interface Admission {
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
  /** The database does not answer, so nothing is written. */
  isAway?: true
  fault?: FaultAction | undefined
}

export type Gate = (parts: Parts, exchange: Arrival) => Promise<Admission>
export type Handler = (parts: Parts, exchange: Exchange, client: string) => Promise<Outcome>
