import type pg from 'pg'
import type { Clients } from './clients.ts'
import type { Answer } from './endpoints/problemAnswer.ts'
import type { Endpoint } from './endpoints/requestSchemas.ts'
import type { FaultAction, Faults } from './faults/faults.ts'
import type { ClientRates, Failures } from './gate/clientRates.ts'
import type { Tokens } from './gate/issuedTokens.ts'
import type { Draws } from './processing/draws.ts'
import type { SandboxClock } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import type { RecordScripts } from './scenario/recordScripts.ts'
import type { Effect, Journal } from './storage/journal.ts'
import type { KeyedMutex } from './storage/keyedMutex.ts'
import type { Outage } from './storage/sandboxDatabase.ts'

/** What a running sandbox has for its endpoints. */
export interface Parts {
  pool: pg.Pool
  clock: SandboxClock
  /** Reads the settings as they are now for a client; null: for a request whose client is not known. */
  live: (client: string | null) => LiveSettings
  clients: Clients
  bodyLimitBytes: number
  tokens: Tokens
  rates: ClientRates
  failures: Failures
  faults: Faults
  scripts: RecordScripts
  journal: Journal
  outage: Outage
  mutex: KeyedMutex
  draws: Draws
  /** Aborts when the sandbox closes: nothing is held back any longer. */
  closing: AbortSignal
}

/** A request, whole. */
export interface Exchange {
  arrivedUs: number
  endpoint: Endpoint | 'other'
  method: string
  /** Without its query. Masked if nothing is served there, because a mistaken client may have put a secret into it. */
  path: string
  /** The last segment of the path, if it is an id. */
  id: string
  address: string
  authorization: string | undefined
  contentType: string
  /** Reads a header by its name. */
  header(name: string): string | undefined
  /** The value of the first header that carries one, by the client's settings. */
  idempotencyKey: string | null
  body: string
  /** As the ledger keeps it. */
  maskedBody: string
  /** Whether the bytes of the body were UTF-8; in `body`, other bytes are U+FFFD. */
  isUtf8: boolean
  /** Waits until no other request holds `name`, and holds it until this request is in the ledger. */
  lock(name: string): Promise<void>
}

/** A request whose client is not known yet. */
export type Arrival = Omit<Exchange, 'idempotencyKey'>

/** Who sent a request and whether it may pass; `headers` go on every answer. */
export interface Admission {
  client: string | null
  counted: boolean
  headers: Record<string, string>
  /** Takes the request out of the count because it failed; returns the headers that say so. */
  ifItFails?: () => Record<string, string>
  refusal: Answer | undefined
}

export interface Outcome {
  answer: Answer
  effect?: Effect
  /** Set if the database is away: there is nowhere to write. */
  isAway?: true
  /** What a script does to this answer. */
  fault?: FaultAction | undefined
}

export type Gate = (parts: Parts, exchange: Arrival) => Promise<Admission>
export type Handler = (parts: Parts, exchange: Exchange, client: string) => Promise<Outcome>
