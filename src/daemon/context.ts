import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import type { FlushableLog } from '../observe/log.ts'
import type { LoopName } from '../observe/metricRows.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Telemetry } from '../observe/telemetry.ts'
import type { ServiceClient } from '../service/client.ts'
import type { ReloadableCredentials } from '../service/reloadableCredentials.ts'
import type { HostWatch } from './dispatch/hostWatch.ts'
import type { InstanceDatabases } from './instanceDatabases.ts'
import type { LoopHealth, Wakeup } from './loop.ts'

export interface DaemonContext {
  /** With the ledger's values of the variables that all daemons share. */
  config: Config
  clock: Clock
  log: FlushableLog
  metrics: Metrics
  telemetry: Telemetry
  databases: InstanceDatabases
  client: ServiceClient
  /** What this host lacked at the last requests. */
  host: HostWatch
  credentials: Pick<ReloadableCredentials, 'renew' | 'broken'>
  mappings: Mappings
  /** Call this if the ledger's settings are no longer those that this daemon acts on. */
  beginAnew(): void
  health: LoopHealth
  wakeups: Record<LoopName, Wakeup>
}
