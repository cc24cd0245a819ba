import type { FaultProxy } from '../../test/support/faultProxy.ts'
import { type Node, startReplicas } from '../../test/support/replicas.ts'
import { waitForStandby } from '../../test/support/waitForStandby.ts'

/** The server that the daemons write to, and its standby. */
export interface Cluster extends AsyncDisposable {
  /** Address that always leads to the current primary. */
  readonly clientUrl: string
  primary(): Node
  standby(): Node
  /** The connection between primary and standby. A fault on it cuts the standby off. */
  link(): FaultProxy
  /** Starts a standby of the primary. */
  follow(): Promise<void>
  /** True if COMMITs wait for the standby, so that the standby has every claim made since. */
  isAwaited(): Promise<boolean>
  /**
   * Kills all processes of the primary at once, promotes the standby and leads clients to it.
   *
   * @param meanwhile runs while there is no primary
   */
  promote(meanwhile?: () => void): Promise<void>
  /** Does work during which no restart, promotion or other such work may happen. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

export interface ClusterOptions {
  /** True if every COMMIT waits for the standby. */
  isSynchronous: boolean
  /** Folder with binaries of a different PostgreSQL; null for those from npm. */
  postgresDir: string | null
}

/** Starts a primary without a standby. `follow` starts the first one. */
export async function startCluster({ isSynchronous, postgresDir }: ClusterOptions): Promise<Cluster> {
  const replicas = await startReplicas({ max_connections: '300' }, postgresDir ?? undefined)
  let lastWork: Promise<unknown> = Promise.resolve()
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
    alone(work) {
      const done = lastWork.then(work)
      lastWork = done.catch(() => {})
      return done
    },
    [Symbol.asyncDispose]: () => replicas[Symbol.asyncDispose](),
  }
}
