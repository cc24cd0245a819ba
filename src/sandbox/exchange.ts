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

/** The parts of a running sandbox that its endpoints work with. */
export interface Parts {
  pool: pg.Pool
  clock: SandboxClock
  /** Reads the settings as they are now for a client; null for whoever is none of ours. */
  live: (client: string | null) => LiveSettings
  clients: Clients
  bodyLimitBytes: number
  tokens: Tokens
  rates: ClientRates
  /** Of those who have not shown who they are, by address. */
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
  /** Without its query, and masked where nothing is served: a mistaken client may have put a secret there. */
  path: string
  /** The last segment of the path, where it is an id. */
  id: string
  address: string
  authorization: string | undefined
  contentType: string
  /** Of the header with this name; undefined where there is none. */
  header(name: string): string | undefined
  /** Of the first header that carries one, going by the client's settings. */
  idempotencyKey: string | null
  body: string
  /** As the ledger keeps it. */
  maskedBody: string
  /** Whether the bytes of the body were UTF-8; in `body`, what is not is U+FFFD. */
  isUtf8: boolean
  /** Waits until no other request holds `name`, and holds it until this one is in the ledger. */
  lock(name: string): Promise<void>
}

/** A request before anybody knows whose it is. */
export type Arrival = Omit<Exchange, 'idempotencyKey'>

/** Who sent it and whether it may pass; `headers` go on whatever is answered. */
export interface Admission {
  client: string | null
  counted: boolean
  headers: Record<string, string>
  refusal: Answer | undefined
}

export interface Outcome {
  answer: Answer
  effect?: Effect
  /** Set where the database is away: there is nothing to write, and nowhere. */
  isAway?: true
  /** What a script has in store for this answer. */
  fault?: FaultAction | undefined
}

export type Gate = (parts: Parts, exchange: Arrival) => Promise<Admission>
export type Handler = (parts: Parts, exchange: Exchange, client: string) => Promise<Outcome>
