import type pg from 'pg'
import { Capture } from '../../../src/daemon/capture.ts'
import type { DaemonContext } from '../../../src/daemon/context.ts'
import { hasSettings, type Settings } from '../../../src/ledger/settings.ts'
import type { Mapping } from '../../../src/mapping/mapping.ts'
import type { CapturedRecord, OutboxRecord } from '../../../src/model/outbox.ts'
import type { LogFields } from '../../../src/observe/log.ts'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { readRecordContentsThatFit } from '../../../src/outbox/readRecordContents.ts'
import type { Listener } from '../../../src/postgres/listener.ts'
import { historyOf } from '../../support/ledger.ts'

export interface CaptureOptions {
  outbox?: Outbox
  mappings?: ReadonlyMap<string, Mapping>
  captureWindow?: number
  /** This daemon's settings, instead of the ledger's. */
  settings?: Settings
  listener?: Pick<Listener, 'setSleepFlag' | 'clearSleepFlag'>
  /** Called before the contents of records are read. */
  beforeContents?(): Promise<void>
  /** The Outbox whose sessions read contents. */
  contentsOutbox?: Outbox
  /** Time limit of the queries of mapping files. */
  sourceMaxMs?: number
  onCaptured?(): void
}

/** Capture on a test's database, and what it did. */
export interface TestCapture {
  readonly capture: Capture
  /** Records of each batch. */
  readonly batches: number[]
  /** Rows of each batch that failed. */
  readonly failedBatches: number[]
  /** Ids of rows that were skipped. */
  readonly skipped: string[]
  readonly wakes: string[]
  /** Captures until nothing is left to do at once. @returns the number of rounds */
  captureAll(): Promise<number>
}

export async function openCapture(pool: pg.Pool, options: CaptureOptions = {}): Promise<TestCapture> {
  const { outbox = new Outbox(pool, 'outbox', 1_000_000, pool), mappings = new Map(), captureWindow = 1_000 } = options
  const batches: number[] = []
  const failedBatches: number[] = []
  const skipped: string[] = []
  const wakes: string[] = []
  const wake = (loop: string) => ({ wake: () => void wakes.push(loop) })
  const context = {
    config: { captureWindow },
    databases: {
      ledger: pool,
      outbox,
      instance: { id: 'test', who: 'test', host: 'test', version: 'test', settings: {} },
      hasOwnSettings: async (db = pool) => options.settings === undefined || hasSettings(db, options.settings),
      history: historyOf(pool),
      listener: options.listener ?? null,
    },
    mappings,
    log: {
      warn(_: string, { count }: LogFields = {}) {
        if (typeof count === 'number') failedBatches.push(count)
      },
      error(event: string, { outboxId }: LogFields = {}) {
        if (event.startsWith('outbox row was skipped')) skipped.push(String(outboxId))
      },
    },
    telemetry: {
      captured({ length }: readonly CapturedRecord[]) {
        batches.push(length)
        options.onCaptured?.()
      },
    },
    wakeups: { dispatch: wake('dispatch'), report: wake('report') },
  } as unknown as DaemonContext
  const capture = new CaptureWithContents(context, options, mappings)
  return {
    capture,
    batches,
    failedBatches,
    skipped,
    wakes,
    async captureAll() {
      for (let rounds = 1; ; rounds++) {
        const result = await capture.captureOnce()
        if (result === 'idle' || result === 'rest' || result === 'full') return rounds
      }
    },
  }
}

class CaptureWithContents extends Capture {
  readonly #options: CaptureOptions
  readonly #outbox: Outbox
  readonly #mappings: ReadonlyMap<string, Mapping>

  constructor(context: DaemonContext, options: CaptureOptions, mappings: ReadonlyMap<string, Mapping>) {
    super(context)
    this.#options = options
    this.#outbox = options.contentsOutbox ?? context.databases.outbox
    this.#mappings = mappings
  }

  protected override async readContents(records: readonly OutboxRecord[]): Promise<OutboxRecord[]> {
    await this.#options.beforeContents?.()
    return readRecordContentsThatFit(this.#outbox, this.#mappings, records, this.#options.sourceMaxMs)
  }
}
