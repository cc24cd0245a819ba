import type pg from 'pg'
import type { Clients } from './clients.ts'
import type { Answer } from './endpoints/problemAnswer.ts'
import type { Endpoint } from './endpoints/requestSchemas.ts'
import type { FaultAction, Faults } from './faults/faults.ts'
import type { ClientRates } from './gate/clientRates.ts'
import type { Tokens } from './gate/issuedTokens.ts'
import type { Draws } from './processing/draws.ts'
import type { SandboxClock } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import type { RecordScripts } from './scenario/recordScripts.ts'
import type { Effect, Journal } from './storage/journal.ts'
import type { KeyedMutex } from './storage/keyedMutex.ts'
import type { Outage } from './storage/sandboxDatabase.ts'

export interface Parts {
  pool: pg.Pool
  clock: SandboxClock
  /** The settings as they are now; null: the client is not known. */
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
  draws: Draws
  /** Aborts when the sandbox closes: nothing is held back any longer. */
  closing: AbortSignal
}

export interface Exchange {
  arrivedUs: number
  endpoint: Endpoint | 'other'
  method: string
  /** Without its query. Masked if nothing is served there. */
  path: string
  /** The last segment of the path. */
  id: string
  address: string
  authorization: string | undefined
  contentType: string
  header(name: string): string | undefined
  /** By the headers that are set. */
  idempotencyKey: string | null
  body: string
  /** As the ledger keeps it. */
  maskedBody: string
  /** In `body`, bytes that are not UTF-8 are U+FFFD. */
  isUtf8: boolean
  /** Waits until no other request holds `name`, and holds it until this request is in the ledger. */
  lock(name: string): Promise<void>
}

/** A request whose client is not known yet. */
export type Arrival = Omit<Exchange, 'idempotencyKey'>

/** `headers` go on every answer. */
export interface Admission {
  client: string | null
  counted: boolean
  headers: Record<string, string>
  /** Takes the request out of the count. @returns the headers that say so */
  ifItFails?: () => Record<string, string>
  refusal: Answer | undefined
}

export interface Outcome {
  answer: Answer
  effect?: Effect
  /** The database is away: there is nowhere to write. */
  isAway?: true
  fault?: FaultAction | undefined
}

export type Gate = (parts: Parts, exchange: Arrival) => Promise<Admission>
export type Handler = (parts: Parts, exchange: Exchange, client: string) => Promise<Outcome>
