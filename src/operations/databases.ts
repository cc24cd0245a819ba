import { setTimeout } from 'node:timers/promises'
import type { DatabaseConfig } from '../config.ts'
import { assertMigrated } from '../ledger/migrations.ts'
import type { Operator, WhoAndReason } from '../ledger/operator/operator.ts'
import { readSettings, type Settings } from '../ledger/settings.ts'
import { Outbox } from '../outbox/outbox.ts'
import type { OutboxTable } from '../outbox/outboxTable.ts'
import { createPool, type Pool, withConnectionErrorsExplained } from '../postgres/database.ts'
import { type LockingSession, readLockingSessions } from '../postgres/locks.ts'
import { catalogSearchPathSettings } from '../postgres/sessionSettings.ts'
import { endLockingSessionAdviceSuffix, lockingSessionNames } from './databaseMessages.ts'

/**
 * The databases, as commands and the console pass them to functions:
 *
 *     readSubmissionDetail(databases.ledger, id, …)                   reads the ledger
 *     withOutbox(databases, (outbox) => readWaitingRows(outbox, 10))  reads the ERP's table
 *     discardSeenSubmissions(operator, seen)                          changes the ledger in an operator's name
 */
export interface Databases extends AsyncDisposable {
  readonly config: DatabaseConfig
  readonly account: string
  readonly ledger: Pool
  /** Gives up waiting for a lock after 2.5 s, because an operator waits. */
  readonly erp: Pool
  readonly locks: Pool
  readonly outboxTable: () => Outbox
}

export interface LedgerPoolOptions {
  connections?: number
  lockMs?: number
}

export const noSettingsMessage =
  'the ledger has no settings yet, because no daemon has run with it. Start one with `outboxd run`.'

/**
 * Reads the settings that the daemons share. A command acts on these, not on the variables of its own shell.
 * @throws Error if no daemon has run with this ledger
 */
export async function readLedgerSettings({ ledger }: Pick<Databases, 'ledger'>): Promise<Settings> {
  const settings = await readSettings(ledger)
  if (settings === null) throw new Error(noSettingsMessage)
  return settings
}

const ledgerName = 'outboxd command'
const outboxName = 'outboxd command outbox'

const goodbyeMs = 1_000

/**
 * @param outboxTable called when first needed, so that a broken outbox.yaml does not prevent a pause
 * @throws DatabaseUnusable if the ledger cannot be reached or was not migrated
 */
export async function openDatabases(
  config: DatabaseConfig,
  account: string,
  outboxTable: () => OutboxTable | string,
  { connections = 2, lockMs }: LedgerPoolOptions = {},
): Promise<Databases> {
  const { databaseUrl } = config
  const onIdleError = () => {} // the next statement reports the error
  const settings =
    lockMs === undefined ? catalogSearchPathSettings : { ...catalogSearchPathSettings, lock_timeout: String(lockMs) }
  const ledger = createPool({ url: databaseUrl, name: ledgerName, connections, onIdleError, settings })
  const erp = createPool({
    ...{ url: databaseUrl, name: outboxName, connections: 2, onIdleError },
    isErp: true,
    settings: { lock_timeout: '2500' },
  })
  const locks = createPool({
    url: databaseUrl,
    name: 'outboxd command locks',
    connections: 1,
    onIdleError,
    settings: catalogSearchPathSettings,
  })
  let outbox: Outbox | undefined
  let { payloadMaxBytes } = config
  const databases: Databases = {
    ...{ config, account, ledger, erp, locks },
    outboxTable() {
      outbox ??= new Outbox(erp, outboxTable(), payloadMaxBytes, ledger)
      return outbox
    },
    async [Symbol.asyncDispose]() {
      const ends = Promise.allSettled([ledger.end(), erp.end(), locks.end()])
      await Promise.race([ends, setTimeout(goodbyeMs, undefined, { ref: false })])
    },
  }
  try {
    await withConnectionErrorsExplained(databaseUrl, async () => {
      await assertMigrated(ledger, databaseUrl)
      payloadMaxBytes = Number((await readSettings(ledger))?.PAYLOAD_MAX_BYTES ?? payloadMaxBytes)
    })
    return databases
  } catch (error) {
    await databases[Symbol.asyncDispose]()
    throw error
  }
}

/** @throws DatabaseUnusable if the ERP's database cannot be reached */
export function withOutbox<T>(
  { config, outboxTable }: Pick<Databases, 'config' | 'outboxTable'>,
  work: (outbox: Outbox) => Promise<T>,
): Promise<T> {
  return withConnectionErrorsExplained(config.databaseUrl, async () => work(outboxTable()))
}

export function createOperator({ ledger, account }: Databases, actor: WhoAndReason): Operator {
  return { ledger, actor: { ...actor, account } }
}

/** Names the sessions that lock a table of the ledger, if `work` fails because it waits for it. */
export async function withLocksNamed<T>({ locks }: Pick<Databases, 'locks'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const holders = await readLockingSessions(locks, ledgerName).catch(() => [])
    if (holders.length === 0) throw error
    throw new Error(
      `a table of the ledger is locked by ${lockingSessionNames(holders)}, so it could not be read.${endLockingSessionAdviceSuffix(holders, 'the ledger’s')}`,
      { cause: error },
    )
  }
}

export const readSessionsBlockingOutboxReads = ({ locks }: Pick<Databases, 'locks'>): Promise<LockingSession[]> =>
  readLockingSessions(locks, outboxName)
