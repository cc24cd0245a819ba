import type { FaultProxy } from '../../test/support/faultProxy.ts'
import { type Node, startReplicas } from '../../test/support/replicas.ts'
import { waitForStandby } from '../../test/support/waitForStandby.ts'
import { KeyedMutex } from './keyedMutex.ts'

/** The server that the daemons write to, and the standby that takes its place. */
export interface Cluster extends AsyncDisposable {
  /** Leads to the primary, whichever that is. */
  readonly clientUrl: string
  primary(): Node
  standby(): Node
  /** Between the two: a fault on it cuts the standby off. */
  link(): FaultProxy
  /** Gives the primary a standby. */
  follow(): Promise<void>
  /** Whether COMMITs wait for the standby: it has every claim that was made since. */
  isAwaited(): Promise<boolean>
  /** kill -9 of the primary, all its processes at once; the standby is promoted and clients are led there. @param meanwhile done while there is none */
  promote(meanwhile?: () => void): Promise<void>
  /** Does work on the server that must not meet a restart, a promotion or another such work. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

export interface ClusterOptions {
  /** Every COMMIT waits for the standby. */
  isSynchronous: boolean
  /** Folder of another PostgreSQL's binaries; null: the registry's. */
  postgresDir: string | null
}

/** Starts a primary; `follow` gives it its first standby. */
export async function startCluster({ isSynchronous, postgresDir }: ClusterOptions): Promise<Cluster> {
  const replicas = await startReplicas({ max_connections: '300' }, postgresDir ?? undefined)
  const mutex = new KeyedMutex()
  let primary = replicas.primary
  let pair: { standby: Node; link: FaultProxy }
  return {
    clientUrl: replicas.clientUrl,
    primary: () => primary,
    standby: () => pair.standby,
    link: () => pair.link,
    async follow() {
      pair = await replicas.addStandby(primary)
      if (isSynchronous) await waitForStandby('*', primary.run)
    },
    async isAwaited() {
      const { rowCount } = await primary.run(`select from pg_stat_replication where sync_state in ('sync', 'quorum')`)
      return rowCount === 1
    },
    async promote(meanwhile = () => {}) {
      const former = primary
      await former.kill()
      meanwhile()
      await pair.standby.promote()
      primary = pair.standby
      await replicas.redirect(primary)
      await replicas.drop(former)
    },
    async alone(work) {
      const release = await mutex.take('server')
      try {
        return await work()
      } finally {
        release()
      }
    },
    [Symbol.asyncDispose]: () => replicas[Symbol.asyncDispose](),
  }
}
