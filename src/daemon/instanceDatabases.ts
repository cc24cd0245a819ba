import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { assertLedgerBelongsToService, bindLedgerToServiceIfUnbound } from '../ledger/binding.ts'
import { LedgerHistory } from '../ledger/history/history.ts'
import { openHeartbeatPool, openLedgerPool } from '../ledger/ledgerSessions.ts'
import { assertMigrated, assertSequencesAreAhead } from '../ledger/migrations.ts'
import type { InstanceLedger } from '../ledger/outcomes.ts'
import { createPauseBackoff } from '../ledger/pauses.ts'
import { BindingMismatch, raiseProblems } from '../ledger/problems.ts'
import { PollQueue } from '../ledger/queue.ts'
import {
  applyStrictestSettings,
  type InstanceSettings,
  isNoOtherOutboxFileInUse,
  outboxFileSettingName,
  withdrawInstanceSettings,
} from '../ledger/settings.ts'
import { Outbox } from '../outbox/outbox.ts'
import { type OutboxTable, tableAccessDigest, toOutboxTable } from '../outbox/outboxTable.ts'
import { OutboxTableUnusable } from '../outbox/readTableShape.ts'
import { createPool, type Database, withConnectionErrorsExplained } from '../postgres/database.ts'
import type { DatabaseAddress } from '../postgres/databaseAddress.ts'
import { openListener } from '../postgres/listener.ts'
import { assertEncodingIsUsable } from '../postgres/migrationSession.ts'
import { connectionsMax, daemonSessionNames } from '../postgres/sessionSettings.ts'
import { requestOverAfterMs, trialLostAfterMs } from '../requestDurations.ts'

type Pool = InstanceLedger['ledger']

export type InstanceDatabases = Awaited<ReturnType<typeof connect>>

export interface InstanceDatabasesOptions {
  config: Config
  address: DatabaseAddress
  outboxTable: OutboxTable | string
  sharedDigests(): Record<string, string>
  instance: { id: string; who: string; version: string; host: string }
  onNotice(): void
  onError(error: Error): void
}

/** @throws DatabaseUnusable, OutboxTableUnusable, OutboxMismatch or ServiceMismatch */
export async function openAndBindInstanceDatabases(options: InstanceDatabasesOptions): Promise<InstanceDatabases> {
  const closing: (() => Promise<unknown>)[] = []
  const closeAll = () => Promise.allSettled(closing.map((close) => close()))
  try {
    return await connect(options, closing, closeAll)
  } catch (error) {
    await closeAll()
    throw error
  }
}

async function connect(
  options: InstanceDatabasesOptions,
  closing: (() => Promise<unknown>)[],
  closeAll: () => Promise<unknown>,
) {
  const { config, address, outboxTable, sharedDigests: given, instance, onNotice, onError } = options
  const ledger = openLedgerPool(address, onError)
  const heartbeats = openHeartbeatPool(address, onError)
  const erp = createPool({
    url: address,
    name: daemonSessionNames.outbox,
    connections: connectionsMax.outbox,
    isErp: true,
    onIdleError: onError,
  })
  for (const pool of [ledger, heartbeats, erp]) closing.push(() => pool.end())
  const digest = tableAccessDigest(toOutboxTable(outboxTable))
  const settings = (): InstanceSettings => ({
    instanceId: instance.id,
    host: instance.host,
    ...config.rateLimit,
    requestTimeoutMs: config.service.requestTimeoutMs,
    keyOnFailure: config.keyOnFailure,
    given: { ...given(), [outboxFileSettingName]: digest },
  })
  const queue = await openLedger(options, ledger)
  closing.push(() => queue.close())
  const outbox = new Outbox(erp, outboxTable, config.payloadMaxBytes, ledger)
  const readTable = () => outbox.readQualifiedName()
  await raiseForeign(ledger, () => outbox.bindLedger(instance.who))
  // Last, because the settings of a start that fails would count for 60 s.
  await applyStrictestSettings(ledger, settings())
  const { channel } = outbox
  const listener = channel === null ? null : openListener({ url: address, channel, readTable, onNotice, onError })
  if (listener !== null) closing.push(listener.close)
  const { requestTimeoutMs } = config.service
  const isOurFileInForce = () => isNoOtherOutboxFileInUse(ledger, digest)
  return {
    ...{ ledger, queue, listener, instance, settings, outbox },
    /** Sessions for heartbeats only, so that no other work delays them. */
    heartbeats,
    /**
     * Runs `work` if the outbox.yaml in use is this instance's, else resolves to `otherwise`.
     *
     * @throws OutboxMismatch
     */
    async runIfOwnFileInUse<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
      return (await isOurFileInForce()) ? raiseForeign(ledger, work) : otherwise
    },
    history: new LedgerHistory({
      pool: ledger,
      instanceId: instance.id,
      standby: config.ledgerStandby,
      clock: systemClock,
    }),
    keyOnFailure: config.keyOnFailure,
    backoff: createPauseBackoff(config),
    requestOverAfterMs: requestOverAfterMs(requestTimeoutMs),
    trialLostAfterMs: trialLostAfterMs(requestTimeoutMs),
    isOwnFileInUse: isOurFileInForce,
    async close(): Promise<void> {
      await withinGoodbye(withdrawInstanceSettings(ledger, instance.id))
      await withinGoodbye(closeAll())
    },
  }
}

async function openLedger({ config, instance }: InstanceDatabasesOptions, ledger: Pool): Promise<PollQueue> {
  return withConnectionErrorsExplained(config.databaseUrl, async () => {
    await assertEncodingIsUsable(ledger, config.databaseUrl)
    await assertMigrated(ledger, config.databaseUrl)
    await assertSequencesAreAhead(ledger, config.databaseUrl)
    await raiseForeign(ledger, async () => {
      await bindLedgerToServiceIfUnbound(ledger, config.service, instance.who)
      await assertLedgerBelongsToService(ledger, config.service)
    })
    return PollQueue.open(ledger)
  })
}

/** Bounds each step of closing, because a half-open connection never answers. */
const goodbyeMs = 3_000

const withinGoodbye = (work: Promise<unknown>): Promise<unknown> =>
  Promise.race([work.catch(() => {}), setTimeout(goodbyeMs, undefined, { ref: false })])

/** Bounds the try of a new outbox.yaml, because the table may be locked while an operator waits for the answer. */
const tryTableMaxMs = 5_000

const untried = () =>
  new Error(
    'the new outbox.yaml could not be tried on the table, so all former files stay in use. Run `outboxd reload` again when the database of the outbox answers',
  )

export async function whyReloadedTableIsRefused(
  { ledger, outbox }: Pick<InstanceDatabases, 'ledger' | 'outbox'>,
  table: OutboxTable | string,
  payloadMaxBytes: number,
): Promise<Error | null> {
  const opening = new Outbox(outbox.pool, table, payloadMaxBytes, ledger).open().then(
    () => null,
    (error: unknown) => (isRefusal(error) ? error : untried()),
  )
  return Promise.race([opening, setTimeout(tryTableMaxMs, undefined, { ref: false }).then(untried)])
}

const isRefusal = (error: unknown): error is BindingMismatch | OutboxTableUnusable =>
  error instanceof BindingMismatch || error instanceof OutboxTableUnusable

async function raiseForeign<T>(ledger: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof BindingMismatch) await raiseProblems(ledger, [error.problem])
    throw error
  }
}
