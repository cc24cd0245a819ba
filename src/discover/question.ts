import type { DiscoverConfig } from '../config.ts'
import type { AnsweredExchange, Exchange } from './exchange.ts'
import type { Finding } from './finding.ts'

export interface Given {
  /** Without it, and without `record`, no record is created. */
  customer: string | null
  unknownCustomer: string | null
  orderCustomer: string | null
  /** The bodies of `--record`; null for ours. */
  record: Body | null
  order: Body | null
  slow: boolean
  rate: boolean
  size: boolean
}

/** A request's body as an object; its numbers keep their digits. */
export type Body = Readonly<Record<string, unknown>>

export type Need = Exclude<keyof Given, 'record' | 'order'>

/** A thing that the interface does not show (docs/why/contract.md). */
export interface Question {
  /** Must not change, because users give it to `--only` and read it in `--json`. */
  name: string
  /** The section of docs/reference/interface.md that says nothing about it. */
  section: string
  asks: string
  /** A variable, a part of the mapping or advice. */
  decides: string
  /** The most requests, without those of its samples. */
  requestsMax: number
  /** The most test records among those requests. */
  recordsMax: number
  /** Taken before `run`, in this order. */
  samples: readonly Sample<unknown>[]
  needs: readonly Need[]
  /** True if production may be asked: the question creates nothing. */
  harmless: boolean
  run(parts: QuestionParts): Promise<Finding>
}

/** Exchanges that several questions use, made once. */
export interface Sample<T> {
  name: string
  requestsMax: number
  recordsMax: number
  /** Taken before `take`, in this order. */
  samples: readonly Sample<unknown>[]
  /** Taken only if this option was given. */
  needs?: Need
  take(parts: QuestionParts): Promise<T>
}

/** All samples that are taken before, each once, in the order in which they are needed. */
export function neededSamples({ samples }: Pick<Question, 'samples'>, given: Given): Set<Sample<unknown>> {
  const wanted = samples.filter(({ needs }) => needs === undefined || Boolean(given[needs]))
  return new Set(wanted.flatMap((sample) => [...neededSamples(sample, given), sample]))
}

export interface QuestionParts {
  config: DiscoverConfig
  given: Given
  /** Part of every test record, so that people at the service can recognise them. */
  run: string
  /**
   * Calls with the shared token.
   * @throws {NoAnswer} if the answer says nothing about the request
   */
  get(path: string): Promise<AnsweredExchange>
  /**
   * @param body JSON text
   * @throws {NoAnswer} as `get` does
   */
  post(path: string, body: string, headers?: Headers): Promise<AnsweredExchange>
  /** Sends a request once and returns any answer. */
  call(request: Call): Promise<Exchange>
  /** A token that is granted becomes the shared one. */
  askToken(clientSecret: string): Promise<Exchange>
  token(): Promise<string>
  /** Takes a sample, or returns it if it was taken before. */
  sample<T>(sample: Sample<T>): Promise<T>
  stop(why: string): void
  exchanges(): readonly Exchange[]
  throttles(): readonly Throttle[]
  /** A number that no other record of this run has. */
  nextNumber(): number
  nowMs(): number
  waitMs(ms: number): Promise<void>
}

export type Headers = Readonly<Record<string, string>>

export interface Call {
  method: 'GET' | 'POST'
  path: string
  body?: string
  headers?: Headers
  /** Replaces the shared token. A 401 is then not followed by a new token. */
  accessToken?: string
  /** Sent even without a free slot, and not repeated after a 429. */
  beyondLimit?: boolean
}

export interface Throttle {
  refused: Exchange
  waitedMs: number
}

export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

export class CannotAsk extends Error {
  override name = 'CannotAsk'
}

/** Nothing more can be asked. */
export class Stopped extends Error {
  override name = 'Stopped'
}
