import type { DiscoverConfig } from '../config.ts'
import type { ConnectionSeen } from './connection.ts'
import type { AnsweredExchange, Exchange } from './exchange.ts'
import type { Finding } from './finding.ts'

/** What whoever asks has said of the service, and how far to go. */
export interface Given {
  /** A customer that the service knows; null where none was named: then no record is created. */
  customer: string | null
  /** One that it does not know. */
  unknownCustomer: string | null
  /** The uuid of a customer that may order. */
  orderCustomer: string | null
  /** Hold a token to its end, and an idle connection. */
  slow: boolean
  /** Use the rate limit up. */
  rate: boolean
  /** Look for the largest body, by steps. */
  size: boolean
}

/** Something of `Given` without which a question is not asked. */
export type Need = keyof Given

/**
 * One thing that the interface does not show (docs/contract.md). `run` sends what it has to and hands the exchanges to a
 * judge, which is pure.
 */
export interface Question {
  /** Promised: `--only` and `--json` know it by this name. */
  name: string
  /** Where docs/interface.md is silent. */
  section: string
  /** What is wanted, in half a sentence. */
  asks: string
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
  take(parts: Parts): Promise<T>
}

/** What a question asks with. */
export interface Parts {
  config: DiscoverConfig
  given: Given
  /** In every test record, so that people at the service can tell them. */
  run: string
  /** @throws {NoAnswer} where what came back tells nothing of what was asked */
  get(path: string, options?: RequestOptions): Promise<AnsweredExchange>
  /** @param body JSON text @throws {NoAnswer} where what came back tells nothing of what was asked */
  post(path: string, body: string, options?: RequestOptions): Promise<AnsweredExchange>
  /** The same for who looks at whatever comes back, also at what is no answer to a question, as a 5xx. */
  getWhatever(path: string, options?: RequestOptions): Promise<Exchange>
  postWhatever(path: string, body: string, options?: RequestOptions): Promise<Exchange>
  /** Asks the issuer for a token, with this secret. */
  askToken(clientSecret: string): Promise<Exchange>
  /** The exchanges of a sample, made now or before. */
  sample<T>(sample: Sample<T>): Promise<T>
  /** Looks at a connection by hand, with one request. @param idleMaxMs how long to wait until the service ends it */
  connect(options: { idleMaxMs: number }): Promise<ConnectionSeen>
  /** Nothing more is sent, for this reason. */
  stop(why: string): void
  /** All so far, in their order. */
  exchanges(): readonly Exchange[]
  nowMs(): number
  /** Waits so long, or until whoever asked has had enough. */
  waitMs(ms: number): Promise<void>
}

export interface RequestOptions {
  headers?: Readonly<Record<string, string>>
  /** In place of the token of all. */
  accessToken?: string
  /** Sent without a slot where none is free now, to see what is beyond the limit. */
  beyondLimit?: boolean
}

/** It was asked, and what came back is no answer to it. */
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
