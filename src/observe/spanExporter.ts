import { Agent, request } from 'undici'
import type { Log, LogFields } from './log.ts'

/** A span in OTLP's JSON. @see OpenTelemetry Protocol 1.x, JSON Protobuf Encoding */
export interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  /** 1: internal, 3: client. */
  kind: 1 | 3
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attribute[]
  /** 2: error. */
  status: { code: 0 | 2 }
}

export interface Attribute {
  key: string
  value: { stringValue: string } | { intValue: string }
}

export interface CollectorAddress {
  /** To which `/v1/traces` is appended. */
  endpoint: string
  /** May hold a secret. */
  headers: Record<string, string>
}

export interface SpanReport {
  log: Pick<Log, 'info' | 'warn'>
  dropped(count: number): void
}

/** Further spans are dropped. */
const keptMax = 5_000
const batchMax = 500
const gatherMs = 500
const retryMs = 5_000
const timeoutMs = 10_000
const closeMaxMs = 2_000

/** A collector may take the same batch later. @see OpenTelemetry Protocol 1.x, Retryable Response Codes */
const retryable: readonly number[] = [429, 502, 503, 504]

/**
 * Sends spans to a collector in batches, one request at a time. Nothing waits for it, and a collector that is away costs
 * only spans.
 */
export class SpanExporter {
  readonly #url: string
  readonly #headers: Record<string, string>
  readonly #resource: Attribute[]
  readonly #report: SpanReport
  readonly #agent = new Agent({ connections: 1 })
  readonly #spans: Span[] = []
  #isFailing = false
  #timer: NodeJS.Timeout | null = null
  #sending: Promise<void> | null = null

  /** @param resource what describes this process */
  constructor({ endpoint, headers }: CollectorAddress, resource: Attribute[], report: SpanReport) {
    this.#url = `${endpoint}/v1/traces`
    this.#headers = { ...headers, 'content-type': 'application/json' }
    this.#resource = resource
    this.#report = report
  }

  add(span: Span): void {
    if (this.#spans.length < keptMax) this.#spans.push(span)
    else this.#report.dropped(1)
    this.#plan()
  }

  /** Sends what is left, for two seconds at most. */
  async close(): Promise<void> {
    const limit = setTimeout(() => void this.#agent.destroy(), closeMaxMs)
    await this.#sending
    do await this.#send()
    while (this.#spans.length > 0 && !this.#isFailing)
    clearTimeout(limit)
    this.#report.dropped(this.#spans.length)
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#agent.destroy()
  }

  #plan(): void {
    if (this.#timer !== null || this.#sending !== null || this.#spans.length === 0) return
    this.#timer = setTimeout(() => void this.#send(), this.#waitMs()).unref()
  }

  #waitMs(): number {
    if (this.#isFailing) return retryMs
    return this.#spans.length >= batchMax ? 0 : gatherMs
  }

  async #send(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#sending = this.#sendBatch(this.#spans.slice(0, batchMax))
    await this.#sending
    this.#sending = null
    this.#plan()
  }

  async #sendBatch(batch: readonly Span[]): Promise<void> {
    if (batch.length === 0) return
    const status = await this.#post(batch)
    if (status === null || retryable.includes(status)) return
    this.#spans.splice(0, batch.length)
    if (status >= 300) this.#report.dropped(batch.length)
  }

  /** @returns null if no answer came */
  async #post(spans: readonly Span[]): Promise<number | null> {
    const scope = { name: 'outboxd' }
    const resourceSpans = [{ resource: { attributes: this.#resource }, scopeSpans: [{ scope, spans }] }]
    try {
      const { statusCode: status, body } = await request(this.#url, {
        method: 'POST',
        headers: this.#headers,
        body: JSON.stringify({ resourceSpans }),
        dispatcher: this.#agent,
        signal: AbortSignal.timeout(timeoutMs),
      })
      await body.dump()
      this.#note(status < 300 ? null : { status })
      return status
    } catch (error) {
      this.#note({ error })
      return null
    }
  }

  /** Logs when a failure begins, and when it is over. */
  #note(failure: LogFields | null): void {
    const { log } = this.#report
    if (failure !== null && !this.#isFailing)
      log.warn('trace collector took no spans: records go on, and their traces get gaps', failure)
    if (failure === null && this.#isFailing) log.info('trace collector takes spans again')
    this.#isFailing = failure !== null
  }
}
