import type { DatabaseConfig } from '../../config.ts'
import { findHistoryProblem, isStandbyAwaited } from '../../ledger/history/history.ts'
import { assertMigrated, findSequencesBehindTables } from '../../ledger/migrations.ts'
import { readMissingGrantStatements } from '../../ledger/operator/grants.ts'
import { findReadOnlyCause, readServerVersion } from '../../ledger/operator/readServer.ts'
import { readStandingPauses } from '../../ledger/pauses.ts'
import { countProblems, findTrialWriteRefusal, type ProblemCount } from '../../ledger/problems.ts'
import type { ProblemKind } from '../../model/problem.ts'
import { readOnlyMessage, standbyAwaitedMessage } from '../../operations/databaseMessages.ts'
import { findCollationChange } from '../../postgres/collationVersion.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import { type Finding, makeFinding } from './finding.ts'

export function checkLedger({ databaseUrl: url }: DatabaseConfig): Promise<Finding[]> {
  const problem = (...lines: string[]) => [makeFinding('ledger', 'problem', ...lines)]
  return inspectDatabase({
    of: 'ledger',
    url,
    async read(db) {
      const grants = await readMissingGrantStatements(db) // first, because other reads need permissions
      if (grants.length > 0) return problem(grantMessage, ...grants.map(statement))
      await assertMigrated(db, url)
      const cause = await findReadOnlyCause(db)
      if (cause !== null) return problem(readOnlyMessage(cause))
      const behind = await findSequencesBehindTables(db)
      if (behind.length > 0) return problem(positionsMessage, ...behind.map(statement))
      const history = await findHistoryProblem(db)
      if (history !== null)
        return problem(`${history}, so nothing is sent. \`outboxd recover --dry-run\` shows what to settle`)
      if (await isStandbyAwaited(db)) return problem(standbyAwaitedMessage)
      const refusal = await findTrialWriteRefusal(db)
      if (refusal !== null) return problem(refusedMessage(refusal))
      const problems = await countProblems(db)
      const pauses = await readStandingPauses(db)
      const collation = await findCollationChange(db)
      return [
        makeFinding('ledger', 'ok', `PostgreSQL ${await readServerVersion(db)}, all migrations are applied`),
        ...(problems.length === 0 ? [] : [judgeProblems(problems)]),
        ...(collation === null ? [] : [makeFinding('ledger', 'warning', collation)]),
        ...pauses.map(({ reason, detail }) =>
          makeFinding(
            'pauses',
            reason === 'standby' ? 'problem' : 'warning',
            `sending is paused (${reason}): ${detail}`,
          ),
        ),
      ]
    },
  })
}

const statement = (sql: string) => `${sql};`

const stopping: ReadonlySet<ProblemKind> = new Set(['loop_failing', 'claim_lost'])

function judgeProblems(counts: readonly ProblemCount[]): Finding {
  const all = counts.map(({ kind, problems }) => `${kind} ${problems}`).join(', ')
  const mark = counts.some(({ kind }) => stopping.has(kind)) ? 'problem' : 'warning'
  return makeFinding('problems', mark, `daemons report open problems (${all}): \`outboxd status\` explains them`)
}

const grantMessage = 'the role lacks permissions in the ledger’s schemas. Their owner must run:'

const positionsMessage =
  'the ledger’s sequences would give out numbers that its tables already have. This happens after logical replication or a partial restore. Stop the daemons and run the statements below as the owner of the schema. If records may have been sent since the copy was made, also run `outboxd recover` before you start a daemon:'

const refusedMessage = (refusal: string) =>
  `the ledger refuses a trial write, so the daemons cannot send: ${refusal}. If the disk is full, give it room`
