import type { DiscoverConfig } from '../config.ts'
import type { AnsweredExchange, Exchange } from './exchange.ts'
import type { Finding } from './finding.ts'

/** What the operator has said of the service, and how far to go. */
export interface Given {
  /** A customer that the service knows; null if none was named: then no record is created. */
  customer: string | null
  /** One that it does not know. */
  unknownCustomer: string | null
  /** The uuid of a customer that may order. */
  orderCustomer: string | null
  /** The bodies of `--record`, to be sent in place of the test record and the test order; null: ours. */
  record: Body | null
  order: Body | null
  /** Hold a token to its end, and watch the limit over two windows. */
  slow: boolean
  /** Use the rate limit up, twice. */
  rate: boolean
  /** Look for the largest body, by steps. */
  size: boolean
}

/** A body of a request as an object; its numbers keep their digits. */
export type Body = Readonly<Record<string, unknown>>

/** Something of `Given` without which a question is not asked. */
export type Need = Exclude<keyof Given, 'record' | 'order'>

/**
 * One thing that the interface does not show (docs/why/contract.md). `run` sends what it has to and hands the exchanges to a
 * judge, which is pure.
 */
export interface Question {
  /** Promised: `--only` and `--json` know it by this name. */
  name: string
  /** Where docs/reference/interface.md is silent. */
  section: string
  /** What is wanted, in half a sentence. */
  asks: string
  /** The variable, the part of a mapping or the advice that its answer decides. */
  decides: string
  /** The most requests that it makes beside those of its samples. */
  requestsMax: number
  /** The most test records that these create. */
  recordsMax: number
  /** Taken before `run`, in this order. */
  samples: readonly Sample<unknown>[]
  needs: readonly Need[]
  /** Whether production may be asked: it creates nothing and refuses nobody. */
  harmless: boolean
  run(parts: Parts): Promise<Finding>
}

/** Exchanges that several questions look at, made once. */
export interface Sample<T> {
  name: string
  requestsMax: number
  recordsMax: number
  /** Taken before `take`, in this order. */
  samples: readonly Sample<unknown>[]
  /** Not taken, and not paid for, unless this was given: `take` is not called then. */
  needs?: Need
  take(parts: Parts): Promise<T>
}

/** What a question asks with. */
export interface Parts {
  config: DiscoverConfig
  given: Given
  /** In every test record, so that people at the service can tell them. */
  run: string
  /** Calls with the token that all questions share. @throws {NoAnswer} if the answer tells nothing of what was asked */
  get(path: string): Promise<AnsweredExchange>
  /** @param body JSON text @throws {NoAnswer} as `get` does */
  post(path: string, body: string, headers?: Headers): Promise<AnsweredExchange>
  /** Sends one request as it is and returns whatever comes back. */
  call(request: Call): Promise<Exchange>
  /** Asks the issuer for a token with this secret. A token that is granted is the one that all questions share from then on. */
  askToken(clientSecret: string): Promise<Exchange>
  /** The token that all questions share. */
  token(): Promise<string>
  /** The exchanges of a sample, made now or before. */
  sample<T>(sample: Sample<T>): Promise<T>
  /** Sends nothing more, for this reason. */
  stop(why: string): void
  /** All so far, in their order. */
  exchanges(): readonly Exchange[]
  /** The 429s that were waited for. */
  throttles(): readonly Throttle[]
  /** A number that no other record of this run has. */
  nextNumber(): number
  nowMs(): number
  /** Waits so long, or until the operator interrupts. */
  waitMs(ms: number): Promise<void>
}

export type Headers = Readonly<Record<string, string>>

export interface Call {
  method: 'GET' | 'POST'
  path: string
  body?: string
  headers?: Headers
  /** In place of the token that all share. Such a request is not repeated with another token after a 401. */
  accessToken?: string
  /** Sent without a slot if none is free, and not repeated after a 429: to see what is beyond the limit. */
  beyondLimit?: boolean
}

/** A 429, and how long it took until the request was let in. */
export interface Throttle {
  refused: Exchange
  waitedMs: number
}

/** It was asked, and what came back does not answer it. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/** This question cannot be asked; others can. */
export class CannotAsk extends Error {
  override name = 'CannotAsk'
}

/** Nothing more can be asked. */
export class Stopped extends Error {
  override name = 'Stopped'
}
