import { boundText, textCharsMax } from '../boundText.ts'
import type { Problem, ProblemKind, RaisedProblem } from '../model/problem.ts'
import { beginTransaction, type Database, type DatabasePool, didSessionSurviveError } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'

const raiseProblemsSql = `insert into outboxd.problem as p (kind, subject, detail, retry_at)
  select distinct on (kind, subject) kind, subject, detail, clock_timestamp() + "retryInMs" * interval '1 ms'
  from json_to_recordset($1) as r(kind text, subject text, detail text, "retryInMs" float8)
  order by kind, subject
  on conflict (kind, subject) do update set detail = excluded.detail, seen_at = excluded.seen_at,
    times = p.times + 1, retry_at = excluded.retry_at`

/** Opens problems. A problem that is already open keeps `since`, and `times` rises by 1. */
export async function raiseProblems(db: Database, problems: readonly RaisedProblem[]): Promise<void> {
  if (problems.length === 0) return
  await db.query(raiseProblemsSql, [JSON.stringify(problems.map(stored))])
}

/** @param subjects null for all problems of the kind */
export async function clearProblems(
  db: Database,
  kind: ProblemKind,
  subjects: readonly string[] | null,
): Promise<void> {
  await db.query('delete from outboxd.problem where kind = $1 and ($2::text[] is null or subject = any($2))', [
    kind,
    subjects?.map(shortenProblemSubject) ?? null,
  ])
}

/** @returns Postgres's words if it has no room for 70 kB */
export async function findTrialWriteRefusal(pool: DatabasePool): Promise<string | null> {
  await using transaction = await beginTransaction(pool) // never committed
  try {
    await transaction.db.query(
      `insert into outboxd.problem (kind, subject, detail)
       select 'trial', gen_random_uuid(), string_agg(gen_random_uuid()::text, '') from generate_series(1, 2000)`,
    )
    return null
  } catch (error) {
    if (!(error instanceof Error) || !didSessionSurviveError(error)) throw error
    return `${error.message} (${errorCodeOf(error)})`
  }
}

/** Opens these problems of the kind and ends all others of the kind. */
export async function replaceProblems(
  db: Database,
  kind: ProblemKind,
  problems: readonly Omit<RaisedProblem, 'kind'>[],
): Promise<void> {
  const standing = problems.map((problem) => stored({ kind, ...problem }))
  await db.query(
    `with others as (delete from outboxd.problem where kind = $2 and subject <> all($3))
     ${raiseProblemsSql}`,
    [JSON.stringify(standing), kind, standing.map(({ subject }) => subject)],
  )
}

/**
 * All problems, with those of the daemons, which end with them. A daemon that is silent for a moment may be held up by just
 * that problem.
 */
export const standingProblemsSql = `(
  select kind, subject, detail, since, seen_at, times, retry_at from outboxd.problem
  union all
  select p.kind, p.part || ' of ' || left(i.id::text, 8), p.detail, i.beat_at - p."ageMs" * interval '1 ms', i.beat_at, 1, null
  from outboxd.instance i, jsonb_to_recordset(i.problems) as p(kind text, part text, detail text, "ageMs" float8)
  where i.stopped_at is null and i.beat_at > clock_timestamp() - interval '30 s'
) p`

export interface ProblemCount {
  kind: ProblemKind
  problems: number
}

export async function countProblems(db: Database): Promise<ProblemCount[]> {
  const { rows } = await db.query<ProblemCount>(
    `select kind, count(*)::int as problems from ${standingProblemsSql} group by kind order by kind`,
  )
  return rows
}

/** More problems of one kind are counted, but not read. */
const problemsPerKindMax = 1_000

/** The oldest come first. Limits each kind for itself, so that many problems of one kind hide no other kind. */
export async function readProblems(db: Database, limitPerKind = problemsPerKindMax): Promise<Problem[]> {
  const { rows } = await db.query<Problem>(
    `select kind, subject, detail, extract(epoch from since)::float8 * 1000 as "sinceMs",
       extract(epoch from seen_at)::float8 * 1000 as "seenMs", times::float8 as times,
       extract(epoch from retry_at)::float8 * 1000 as "retryMs"
     from (select *, row_number() over (partition by kind order by since, subject) as n from ${standingProblemsSql}) p
     where n <= $1 order by since, kind, subject`,
    [limitPerKind],
  )
  return rows
}

const stored = (problem: RaisedProblem): RaisedProblem => ({
  ...problem,
  subject: shortenProblemSubject(problem.subject),
  detail: boundText(problem.detail, textCharsMax.excerpt),
})

/** Necessary, because an index entry holds at most 2,704 bytes. */
export const shortenProblemSubject = (subject: string): string => boundText(subject, textCharsMax.message)
