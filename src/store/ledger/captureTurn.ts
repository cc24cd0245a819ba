import type pg from 'pg'
import { type Database, inTransaction } from '../database.ts'
import { type KeptRecord, keepRecords } from './keepRecords.ts'
import { blockingStates, type KeyOnFailure, lockLines, releaseHeads } from './keyLine.ts'
import { clearProblems, raiseProblems } from './problems.ts'
import { conflictRetryMs } from './sameRow.ts'

/** What the ledger has room for, read under the turn. */
export interface CaptureTurn {
  /** Submissions that are queued. */
  queued: number
  /** Keys whose line is long, or waits for a person: more of them would only fill the window. */
  crowdedKeys: string[]
  /** Rows that were put aside for now: they are not to be claimed. */
  putAside: string[]
  /**
   * Writes records into the ledger; committed when the turn's work resolves.
   *
   * @returns the ids of rows that are others than those that the ledger knows by their ids: nothing became of them
   */
  keep(records: readonly KeptRecord[]): Promise<ReadonlySet<string>>
}

export interface CaptureTurns {
  /**
   * Runs `work` while no other instance captures: rows enter the ledger in the order of their ids, which is what order
   * by key stands on. The ledger's transaction commits before this resolves.
   *
   * @returns null where another instance has the turn
   */
  take<T>(work: (turn: CaptureTurn) => Promise<T>): Promise<T | null>
}

const lineMost = 20

export function createCaptureTurns(deps: { pool: pg.Pool; who: string; keyOnFailure: KeyOnFailure }): CaptureTurns {
  return {
    take: (work) =>
      inTransaction(deps.pool, async (client) => {
        const { rows } = await client.query<{ turn: boolean }>('select pg_try_advisory_xact_lock(7161) as turn')
        if (!rows[0]?.turn) return null
        return work({ ...(await readRoom(client, deps.keyOnFailure)), keep: (records) => keep(deps, client, records) })
      }),
  }
}

async function keep(
  deps: { who: string; keyOnFailure: KeyOnFailure },
  client: Database,
  records: readonly KeptRecord[],
): Promise<ReadonlySet<string>> {
  const keys = records.flatMap(({ key }) => (key === null ? [] : [key]))
  if (keys.length > 0) await lockLines(client, keys)
  const conflicts = await keepRecords(client, records, deps.who)
  if (keys.length > 0) await releaseHeads(client, keys, deps.keyOnFailure)
  const inConflict = new Set(conflicts.map(({ outboxId }) => outboxId))
  const retryInMs = conflictRetryMs
  const raised = conflicts.map(({ outboxId, detail }) => ({
    kind: 'row_conflict' as const,
    subject: outboxId,
    detail,
    retryInMs,
  }))
  await raiseProblems(client, raised)
  const good = records.flatMap(({ outboxId }) => (inConflict.has(outboxId) ? [] : [outboxId]))
  await clearProblems(client, 'row_conflict', good)
  return inConflict
}

async function readRoom(client: Database, keyOnFailure: KeyOnFailure): Promise<Omit<CaptureTurn, 'keep'>> {
  const { rows } = await client.query<Omit<CaptureTurn, 'keep'>>(
    `with line as (
       select key, count(*) as length from outboxd.submission where state = 'queued' and held group by key
     )
     select (select count(*)::int from outboxd.submission where state = 'queued') as queued,
       (select coalesce(array_agg(key), '{}') from line where length >= $1 or (
          select s.state not in ('queued', 'sending') from outboxd.submission s
          where s.key = line.key and s.state in (${blockingStates[keyOnFailure]}) order by s.seq limit 1
        )) as "crowdedKeys",
       (select coalesce(array_agg(subject), '{}') from outboxd.problem
         where kind = 'row_conflict' and retry_at > clock_timestamp()) as "putAside"`,
    [lineMost],
  )
  return rows[0] ?? { queued: 0, crowdedKeys: [], putAside: [] }
}
