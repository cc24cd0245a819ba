import { randomUUID } from 'node:crypto'
import { readConfig } from '../../src/config.ts'
import type { DaemonContext } from '../../src/daemon/context.ts'
import { type InstanceDatabases, openAndBindInstanceDatabases } from '../../src/daemon/instanceDatabases.ts'
import { createWakeup } from '../../src/daemon/loop.ts'
import type { Mappings } from '../../src/mapping/loadMappings.ts'
import { loopNames } from '../../src/observe/metricRows.ts'
import { daemonEnvironment } from './daemon.ts'

/** A call that a part of the daemon made, such as `log.warn` or `metrics.setSnapshot`, with its arguments. */
type Told = [name: string, ...args: unknown[]]

/** Opens the databases of an instance on this database, with an outbox beside the ledger. Must be closed. */
export function openInstance(
  url: string,
  variables: Record<string, string> = {},
  mappings: Mappings = new Map(),
): Promise<InstanceDatabases> {
  const id = randomUUID()
  const env = daemonEnvironment(url, 'http://localhost:1', variables)
  const config = readConfig(env)
  return openAndBindInstanceDatabases({
    ...{ config, mappings },
    databaseUrl: () => config.databaseUrl,
    outboxTable: 'outbox',
    instance: { id, who: `daemon ${id.slice(0, 8)}`, version: 'test', host: 'test' },
    onNotice() {},
    onError() {},
  })
}

/** Makes the context of a part of the daemon, with a clock that the test sets. `told` has its logs and metrics. */
export function contextOf(databases: InstanceDatabases, env: Record<string, string> = {}) {
  const time = { ms: 0 }
  const told: Told[] = []
  const recorder = <T extends object>(name: string) =>
    new Proxy<T>({} as T, {
      get(_, member) {
        const tell = (...args: unknown[]) => void told.push([`${name}.${String(member)}`, ...args])
        return Object.assign(tell, { set: tell })
      },
    })
  const wakeups = Object.fromEntries(loopNames.map((name) => [name, createWakeup()])) as DaemonContext['wakeups']
  wakeups.dispatch.wake = () => void told.push(['dispatch was woken'])
  const context = {
    config: readConfig(daemonEnvironment('postgres://unused', 'http://localhost:1', env)),
    clock: {
      nowMs: Date.now,
      stopwatch() {
        const sinceMs = time.ms
        return () => time.ms - sinceMs
      },
    },
    log: recorder<DaemonContext['log']>('log'),
    metrics: recorder<DaemonContext['metrics']>('metrics'),
    telemetry: recorder<DaemonContext['telemetry']>('telemetry'),
    databases,
    wakeups,
    beginAnew: () => void told.push(['begins anew']),
  } as DaemonContext
  return { context, time, told, toldOf: (name: string) => told.filter(([each]) => each === name) }
}
