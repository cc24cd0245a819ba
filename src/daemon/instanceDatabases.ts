import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import { type Config, withLedgerSettings } from '../config.ts'
import { assertLedgerBelongsToService, bindLedgerToServiceIfUnbound } from '../ledger/binding.ts'
import { LedgerHistory } from '../ledger/history/history.ts'
import type { Instance } from '../ledger/instances.ts'
import { openHeartbeatPool, openLedgerPool } from '../ledger/ledgerSessions.ts'
import { assertMigrated, assertSequencesAreAhead } from '../ledger/migrations.ts'
import type { InstanceLedger } from '../ledger/outcomes.ts'
import { PollQueue } from '../ledger/queue.ts'
import { describeDifferences, hasSettings, readOrSetSettings, type Settings } from '../ledger/settings.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { createPauseBackoff } from '../model/breaker.ts'
import { readFileSettings } from '../outbox/digestFiles.ts'
import { Outbox } from '../outbox/outbox.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import { createPool, type Database, withConnectionErrorsExplained } from '../postgres/database.ts'
import { type Listener, openListener } from '../postgres/listener.ts'
import { assertEncodingIsUsable } from '../postgres/migrationSession.ts'
import { connectionsMax, daemonSessionNames } from '../postgres/sessionSettings.ts'
import { requestOverAfterMs } from '../requestDurations.ts'

type Pool = InstanceLedger['ledger']

export interface InstanceDatabases extends InstanceLedger {
  /** With the ledger's values of the variables that all daemons share. */
  config: Config
  /** Sessions for heartbeats only, so that no other work delays them. */
  heartbeats: Pool
  outbox: Outbox
  /** Null if the outbox's table notifies nobody. */
  listener: Listener | null
  /** What this daemon was given and shares with the others. */
  ownSettings: Settings
  /** Null if the ledger has none yet, and another daemon captures or writes back. */
  ledgerSettings: Settings | null
  instance: Instance & { who: string }
  /** In what this daemon's settings differ from the ledger's; '' if in nothing. Then it captures and writes back. */
  differences: string
  /** True if the ledger has this daemon's settings, and had them when this daemon read its configuration. */
  hasOwnSettings(db?: Database): Promise<boolean>
  history: LedgerHistory
  close(): Promise<void>
}

export interface InstanceDatabasesOptions {
  /** As this daemon was given it. Where all daemons share a variable, the ledger's value counts. */
  config: Config
  /** Its user name and password may change. */
  databaseUrl(): string
  outboxTable: OutboxTable | string
  mappings: Mappings
  instance: Omit<Instance, 'settings'> & { who: string }
  onNotice(): void
  onError(error: Error): void
}

/** @throws DatabaseUnusable, OutboxTableUnusable, OutboxMismatch or ServiceMismatch */
export async function openAndBindInstanceDatabases(options: InstanceDatabasesOptions): Promise<InstanceDatabases> {
  const { config: given, databaseUrl: url, outboxTable, mappings, instance, onNotice, onError } = options
  const closing: (() => Promise<unknown>)[] = []
  await using opened = new AsyncDisposableStack()
  opened.defer(() => withinGoodbye(Promise.allSettled(closing.map((close) => close()))))
  const ledger = openLedgerPool(url, onError)
  const heartbeats = openHeartbeatPool(url, onError)
  const erp = createPool({
    url,
    name: daemonSessionNames.outbox,
    connections: connectionsMax.outbox,
    isErp: true,
    onIdleError: onError,
  })
  for (const pool of [ledger, heartbeats, erp]) closing.push(() => pool.end())
  const queue = await openLedger(options, ledger)
  closing.push(() => queue[Symbol.asyncDispose]())
  const outbox = new Outbox(erp, outboxTable, given.payloadMaxBytes, ledger)
  await outbox.bindLedger(instance.who)
  const ownSettings = { ...given.shared, ...(await readFileSettings(erp, outboxTable, mappings)) }
  const ledgerSettings = await readOrSetSettings(ledger, { ...instance, settings: ownSettings })
  const config = withLedgerSettings(given, ledgerSettings ?? ownSettings)
  const differences = describeDifferences(ownSettings, ledgerSettings ?? ownSettings)
  const { channel } = outbox
  const { qualified: table } = (await outbox.inspect()).shape
  const listener = channel === null ? null : openListener({ url, channel, table, onNotice, onError })
  if (listener !== null) closing.push(listener.close)
  const all = opened.move()
  return {
    config,
    ledger,
    heartbeats,
    queue,
    outbox,
    listener,
    ownSettings,
    ledgerSettings,
    differences,
    instance: { ...instance, settings: ownSettings },
    hasOwnSettings: async (db = ledger) => differences === '' && (await hasSettings(db, ownSettings)),
    history: new LedgerHistory({
      pool: ledger,
      instanceId: instance.id,
      standby: config.ledgerStandby,
      clock: systemClock,
    }),
    backoff: createPauseBackoff(config),
    requestOverAfterMs: requestOverAfterMs(config.service.requestTimeoutMs),
    close: () => all.disposeAsync(),
  }
}

async function openLedger({ config, instance }: InstanceDatabasesOptions, ledger: Pool): Promise<PollQueue> {
  return withConnectionErrorsExplained(config.databaseUrl, async () => {
    await assertEncodingIsUsable(ledger, config.databaseUrl)
    await assertMigrated(ledger, config.databaseUrl)
    await assertSequencesAreAhead(ledger, config.databaseUrl)
    await bindLedgerToServiceIfUnbound(ledger, config.service, instance.who)
    await assertLedgerBelongsToService(ledger, config.service)
    return PollQueue.open(ledger)
  })
}

/** Bounds the closing, because a half-open connection never answers. */
const goodbyeMs = 3_000

async function withinGoodbye(work: Promise<unknown>): Promise<void> {
  await Promise.race([work, setTimeout(goodbyeMs, undefined, { ref: false })])
}
