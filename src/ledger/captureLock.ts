import type pg from 'pg'
import type { CapturedRecord, CaptureSession, FailedRow } from '../model.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import type { History } from './history/createHistory.ts'
import { insertCaptured } from './insertCaptured.ts'
import { isAlive } from './instanceLife.ts'
import { blockingStates, inLines, type KeyOnFailure } from './keyOrder.ts'
import { clearProblems, raiseProblems, replaceProblems } from './problems.ts'
import { conflictRetryMs } from './sameRow.ts'
import { type Agenda, forgetSkipped, isOfServed, readAgenda, skipRow } from './skippedRows.ts'
import { epochMs } from './times.ts'

export interface CaptureLock {
  /**
   * Runs `work` while no other instance captures: rows enter the ledger in the order of their ids, which is what order
   * by key stands on. The ledger's transaction commits before this resolves.
   *
   * @returns null where another instance captures
   */
  withLock<T>(work: (session: CaptureSession) => Promise<T>): Promise<T | null>
  readAgenda(): Promise<Agenda>
  /** Puts rows off that fail each for itself. */
  skip(rows: readonly FailedRow[]): Promise<void>
  /** A row that was put off is through, or gone. */
  forget(outboxId: string): Promise<void>
}

export interface CaptureLockDeps {
  pool: pg.Pool
  who: string
  keyOnFailure: KeyOnFailure
  history: Pick<History, 'stands' | 'mayTake'>
}

export function createCaptureLock(deps: CaptureLockDeps): CaptureLock {
  const { pool, keyOnFailure } = deps
  return {
    withLock: (work) =>
      inTransaction(pool, async (client) => {
        const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_xact_lock(7161) as locked')
        if (!rows[0]?.locked) return null
        const standing = await readStanding(client, keyOnFailure)
        return work({
          ...standing,
          hasHistory: await deps.history.stands(client),
          leave: (types) => leave(client, standing, types),
          insert: async (records) =>
            (await deps.history.mayTake(client)) ? insert(deps, client, withDoubts(records, standing)) : null,
        })
      }),
    readAgenda: () => readAgenda(pool),
    skip: (rows) =>
      inTransaction(pool, async (client) => {
        for (const row of rows) await skipRow(client, row)
      }),
    forget: (outboxId) => inTransaction(pool, (client) => forgetSkipped(client, outboxId)),
  }
}

async function insert(
  deps: { who: string; keyOnFailure: KeyOnFailure },
  client: Database,
  records: readonly CapturedRecord[],
): Promise<ReadonlySet<string>> {
  const conflicts = await inLines(client, records, deps.keyOnFailure, () => insertCaptured(client, records, deps.who))
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

interface Standing extends Pick<CaptureSession, 'queued' | 'lines' | 'skipped' | 'typesKnown'> {
  instances: { name: string; types: string[] | null }[]
  /** Rows that were recorded before, epoch milliseconds, may have been sent by a ledger that has gone back since; null: none. */
  doubtfulBeforeMs: number | null
}

/** What may have been sent is not sent on a guess. */
function withDoubts(records: readonly CapturedRecord[], { doubtfulBeforeMs }: Standing): readonly CapturedRecord[] {
  if (doubtfulBeforeMs === null) return records
  return records.map((record) =>
    record.error === null && record.createdAt !== null && Date.parse(record.createdAt) <= doubtfulBeforeMs
      ? { ...record, doubt: waitingDoubt }
      : record,
  )
}

const waitingDoubt =
  'its row was recorded before it was found that the ledger went back in time, or within seconds after: it may have been captured and sent before'

async function readStanding(client: Database, keyOnFailure: KeyOnFailure): Promise<Standing> {
  const { rows } = await client.query<Omit<Standing, 'typesKnown'>>(
    `with line as (
       select held.key, held.length, (
         select s.state not in ('queued', 'sending') from outboxd.submission s
         where s.key = held.key and s.state in (${blockingStates[keyOnFailure]}) order by s.seq limit 1
       ) as stuck
       from (
         select key, count(*) as length from outboxd.submission where state = 'queued' and held group by key
       ) held
     )
     select (select count(*)::int from outboxd.submission where state = 'queued') as queued,
       (select coalesce(json_agg(json_build_object('key', key, 'length', length, 'waitsForPerson', coalesce(stuck, false))), '[]')
        from line) as lines,
       (select coalesce(json_agg(json_build_object('outboxId', id, 'isCaptured', captured)), '[]') from (
          select outbox_id as id, captured from outboxd.skipped_row where ${isOfServed}
          union all select subject, false from outboxd.problem where kind = 'row_conflict' and subject <> '' and retry_at > clock_timestamp()
        ) off) as skipped,
       (select ${epochMs('doubtful_before')} from outboxd.history) as "doubtfulBeforeMs",
       (select coalesce(json_agg(json_build_object('name', left(id::text, 8) || ' on ' || host, 'types', types) order by started_at), '[]')
        from outboxd.instance i where ${isAlive('i')}) as instances`,
  )
  const standing = rows[0] ?? { queued: 0, lines: [], skipped: [], instances: [], doubtfulBeforeMs: null }
  return { ...standing, typesKnown: typesOf(standing.instances) }
}

function typesOf(instances: Standing['instances']): string[] | null {
  const types = instances.map((instance) => instance.types)
  return types.every((each) => each !== null) ? [...new Set(types.flat())] : null
}

async function leave(client: Database, { instances }: Standing, types: readonly string[]): Promise<void> {
  const problems = types.map((type) => ({ subject: type, detail: whoKnows(type, instances), retryInMs: null }))
  await replaceProblems(client, 'unknown_type', problems)
}

function whoKnows(type: string, instances: Standing['instances']): string {
  const names = (those: Standing['instances']) => those.map(({ name }) => name).join(', ')
  const knowing = instances.filter(({ types }) => types?.includes(type))
  const silent = instances.filter(({ types }) => types === null)
  const others = instances.filter(({ types }) => types !== null && !types.includes(type))
  return [
    knowing.length > 0 && `known by ${names(knowing)}`,
    silent.length > 0 && `${names(silent)} of an older version may know it`,
    others.length > 0 && `no mapping file on ${names(others)}`,
  ]
    .filter((part) => part !== false)
    .join('; ')
}
