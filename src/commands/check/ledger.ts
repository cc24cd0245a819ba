import type { StoreConfig } from '../../config.ts'
import { emptyMemory, judgeHistory } from '../../ledger/history/readHistory.ts'
import { assertMigrated } from '../../ledger/migrations.ts'
import { readMissingGrants } from '../../ledger/operator/grants.ts'
import { readMissingLimits, readReadOnly, readServerVersion } from '../../ledger/operator/readServer.ts'
import { countProblems } from '../../ledger/problems.ts'
import { findLostPositions, findMissingParts, type StructurePart } from '../../ledger/structure.ts'
import { readOnlyMessage } from '../../operations/databaseMessages.ts'
import type { Database } from '../../postgres/database.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import { type Finding, finding } from './finding.ts'

/**
 * Looks at the ledger's database and at the problems in it.
 * @throws DatabaseUnusable if it cannot be reached or lacks a migration
 */
export async function checkLedger({ stateDatabaseUrl: url, ledgerStandby }: StoreConfig): Promise<Finding[]> {
  const { version, limits, cause, grants, missing, positions, problems, history } = await inspectDatabase({
    variable: 'STATE_DATABASE_URL',
    url,
    async look(db) {
      const grants = await readMissingGrants(db) // before anything of ours is read
      const server = {
        grants,
        version: await readServerVersion(db),
        limits: await readMissingLimits(db),
        cause: await readReadOnly(db),
      }
      if (grants.length > 0) return { ...server, missing: [], positions: [], problems: [], history: null }
      await assertMigrated(db, url)
      return {
        ...server,
        missing: await findMissingParts(db),
        positions: await findLostPositions(db),
        problems: await countProblems(db),
        history: await readUnseenHistory(db, ledgerStandby),
      }
    },
  })
  const problem = (message: string) => [finding('ledger', 'problem', message)]
  if (grants.length > 0) return problem(grantMessage(grants))
  if (cause !== null) return problem(readOnlyMessage({ of: 'ledger', cause }))
  if (missing.length > 0) return problem(missingMessage(missing))
  if (positions.length > 0) return problem(positionsMessage(positions))
  if (history !== null) return problem(history)
  if (limits.length > 0) return problem(limitMessage(limits))
  return [
    finding('ledger', 'ok', `PostgreSQL ${version}, all migrations are applied`),
    ...(problems.length === 0 ? [] : [judgeProblems(problems)]),
  ]
}

/** Says what the first daemon would find in the ledger's history, if no daemon has looked yet. */
async function readUnseenHistory(db: Database, standby: StoreConfig['ledgerStandby']): Promise<string | null> {
  const findNamed = async () => ({ kind: 'none' }) as const
  const { view, verdict } = await judgeHistory(db, emptyMemory, { standby, findNamed })
  if (view === null)
    return 'the row that says which history it has is gone: nothing is sent until outboxd recover --restored'
  if (verdict.kind !== 'found') return null
  return `its history is another than the daemons had agreed to (${verdict.detail}): nothing is sent until outboxd recover, once a daemon that is started has looked at it`
}

function judgeProblems(counts: Awaited<ReturnType<typeof countProblems>>): Finding {
  const all = counts.map(({ kind, problems }) => `${kind} ${problems}`).join(', ')
  return {
    what: 'problems',
    mark: counts.some(({ kind }) => kind === 'ledger_history') ? 'problem' : 'warning',
    message: `daemons have met what stands (${all}): outboxd status explains it`,
  }
}

const grantMessage = (grants: readonly string[]) =>
  [
    'our role must not do all that a daemon does in our schemas; their owner grants it so:',
    ...grants.map((grant) => `${grant};`),
  ].join('\n')

const missingMessage = (missing: readonly StructurePart[]) =>
  [
    `it lacks what its migrations made (${missing.map(({ name }) => name).join(', ')}): it was restored in part, or somebody dropped it. Stop the daemons; its owner makes it anew, and where that fails, restores it again (pg_restore -1):`,
    ...missing.map(({ sql }) => `${sql};`),
  ].join('\n')

const positionsMessage = (positions: readonly StructurePart[]) =>
  [
    'its sequences are behind their tables, as logical replication leaves them, or who puts rows of a backup back. Stop the daemons; its owner sets them, and unless it is known that nothing was sent since, outboxd recover --restored --as uncertain comes before a daemon starts:',
    ...positions.map(({ sql }) => `${sql};`),
  ].join('\n')

export function limitMessage(statements: readonly string[]): string {
  return `a pooler in between keeps our limits of time from the server, so that a statement could wait for ever; give them to the role: ${statements.join('; ')}`
}
