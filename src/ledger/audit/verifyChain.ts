import type { Database } from '../../postgres/database.ts'
import { unprunedCausePrefix } from '../retention.ts'
import {
  type BlockContents,
  type BlockHeader,
  beforeFirstBlock,
  type ChainEntry,
  type ChainHead,
  type ChainPosition,
  chainPositionColumnsSql,
  computeBlockDigest,
  computeBlockHash,
  readActChainEntries,
  readEventChainEntries,
} from './chain.ts'

export interface ChainVerdict {
  /** The first difference between logs and chain. */
  broken: string | null
  /** `noted`: the noted block differs or is missing. `log`: the blocks are intact, but a submission's log is not. */
  brokenBy: 'block' | 'noted' | 'log' | null
  head: ChainHead | null
  blocks: number
  entries: number
  /** Unchanged events of which a part was emptied or erased. */
  reduced: number
  /** Events that were deleted with their submissions. */
  gone: number
  /** Entries not in the chain yet. */
  waiting: number
}

interface Block extends BlockHeader, ChainPosition {
  eventIds: string[] | null
  submissionIds: string[] | null
  leaves: Buffer | null
  actIds: string[]
}

const blocksAtOnce = 20

function emptyVerdict(): ChainVerdict {
  return { broken: null, brokenBy: null, head: null, blocks: 0, entries: 0, reduced: 0, gone: 0, waiting: 0 }
}

/**
 * Hashes again outside the database, up to the first difference.
 * @param noted a block that the operator stored elsewhere; the chain must have it
 */
export async function verifyChain(
  db: Database,
  noted: ChainHead | null,
  onProgress: (soFar: ChainVerdict) => void = () => {},
): Promise<ChainVerdict> {
  const verdict = emptyVerdict()
  let last = beforeFirstBlock
  let isNotedSeen = noted === null
  for await (const block of verifyBlocks(db, beforeFirstBlock, verdict)) {
    const hash = block.hash.toString('hex')
    if (verdict.broken === null && noted?.number === block.number) {
      isNotedSeen = true
      if (noted.hash !== hash) breakVerdict(verdict, 'noted', `block ${block.number} differs from the noted one`)
    }
    if (verdict.broken !== null) return verdict
    verdict.head = { number: block.number, hash }
    verdict.blocks += 1
    last = block
    onProgress(verdict)
  }
  if (!isNotedSeen && noted !== null) breakVerdict(verdict, 'noted', `the noted block ${noted.number} is missing`)
  else breakVerdict(verdict, 'log', await findLogWithoutBeginning(db))
  verdict.waiting = await countWaiting(db, last)
  return verdict
}

function breakVerdict(verdict: ChainVerdict, by: ChainVerdict['brokenBy'], broken: string | null): void {
  verdict.broken = broken
  verdict.brokenBy = broken === null ? null : by
}

export type ChainVerification = { end: 'begun' } | { end: 'through'; broken: string | null; isWhole: boolean }

/** Verifies the last 25 hours, or all blocks, in parts. Each call continues where the last call stopped. */
export function createChainVerifier(
  db: Database,
  shouldVerifyAll: () => Promise<boolean>,
): (goOn: () => boolean) => Promise<ChainVerification> {
  let next: ChainPosition | null = null
  let isWhole = false
  return async (goOn) => {
    if (!goOn()) return { end: 'begun' }
    const verdict = emptyVerdict()
    if (next === null) {
      isWhole = await shouldVerifyAll()
      next = isWhole ? beforeFirstBlock : await readBlockBeforeLastDay(db)
    }
    for await (const block of verifyBlocks(db, next, verdict)) {
      next = block
      if (verdict.broken !== null) break
      if (!goOn()) return { end: 'begun' }
    }
    next = null
    return { end: 'through', broken: verdict.broken, isWhole }
  }
}

async function* verifyBlocks(db: Database, from: ChainPosition, verdict: ChainVerdict): AsyncGenerator<Block> {
  let before = from
  for (;;) {
    const blocks = await readBlocks(db, before.number)
    for (const block of blocks) {
      breakVerdict(verdict, 'block', await findBreak(db, before, block, verdict))
      yield block
      before = block
    }
    if (blocks.length < blocksAtOnce) return
  }
}

async function readBlockBeforeLastDay(db: Database): Promise<ChainPosition> {
  const { rows } = await db.query<ChainPosition>(
    `select ${chainPositionColumnsSql} from outboxd.chain_block
     where made_at < clock_timestamp() - interval '25 hours' order by chain_block.number desc limit 1`,
  )
  return rows[0] ?? beforeFirstBlock
}

async function readBlocks(db: Database, after: string): Promise<Block[]> {
  const { rows } = await db.query<Block>(
    `select ${chainPositionColumnsSql}, events, acts, event_ids::text[] as "eventIds", submission_ids::text[] as "submissionIds", leaves,
       act_ids::text[] as "actIds", digest
     from outboxd.chain_block where number > $1 order by chain_block.number limit ${blocksAtOnce}`,
    [after],
  )
  return rows
}

async function findBreak(
  db: Database,
  before: ChainPosition,
  block: Block,
  verdict: ChainVerdict,
): Promise<string | null> {
  const { number, leaves, eventIds, submissionIds, actIds, digest, hash } = block
  const isNext = BigInt(number) === BigInt(before.number) + 1n
  if (!isNext) return `block ${BigInt(before.number) + 1n} is missing`
  if (!computeBlockHash(before.hash, block).equals(hash))
    return `block ${number} does not follow from block ${before.number}`
  const events = await readEventChainEntries(db, before.lastEvent, block.lastEvent, null)
  const acts = await readActChainEntries(db, before.lastAct, block.lastAct, null)
  if (leaves === null || eventIds === null || submissionIds === null) {
    // Retention empties only blocks without acts.
    if (block.acts > 0) return `block ${number} was emptied, but operators’ acts are in it`
    const [extra] = [...events, ...acts]
    if (extra !== undefined)
      return `${nameOf(extra)} was added to block ${number} after all entries of the block had been deleted`
    verdict.gone += block.events
    return null
  }
  const contents = { leaves, eventIds, submissionIds, actIds }
  if (!computeBlockDigest(contents).equals(digest)) return `block ${number} was changed`
  return (await compareEntries(db, contents, [events, acts], verdict)) ?? findChangedBody(db, before, block)
}

/** Compares each body with the digest that the log got when the body was last sent. Leaves out replayed submissions. */
async function findChangedBody(db: Database, before: ChainPosition, block: Block): Promise<string | null> {
  const { rows } = await db.query<{ id: string; submissionId: string }>(
    `select e.id::text, e.submission_id::text as "submissionId"
     from outboxd.submission_event e join outboxd.submission s on s.id = e.submission_id
     where e.id > $1 and e.id <= $2 and e.to_state = 'sending' and e.detail ->> 'bodySha256' is not null and s.emptied_at is null
       and not exists (select from outboxd.submission_event l where l.submission_id = e.submission_id and l.id > e.id
         and (l.detail ->> 'bodySha256' is not null or l.detail ? 'former'))
       and encode(sha256(convert_to(s.body, 'UTF8')), 'hex') is distinct from e.detail ->> 'bodySha256'
     order by e.id limit 1`,
    [before.lastEvent, block.lastEvent],
  )
  const [changed] = rows
  return changed === undefined
    ? null
    : `the body of submission ${changed.submissionId} was changed since it was sent (event ${changed.id})`
}

async function compareEntries(
  db: Database,
  { eventIds, submissionIds, actIds, leaves }: BlockContents,
  [events, acts]: [ChainEntry[], ChainEntry[]],
  verdict: ChainVerdict,
): Promise<string | null> {
  const missing: { id: string; submissionId: string }[] = []
  const logs = [
    { found: new Map(events.map((entry) => [entry.id, entry])), ids: eventIds, first: 0, kind: 'event' },
    { found: new Map(acts.map((entry) => [entry.id, entry])), ids: actIds, first: eventIds.length, kind: 'act' },
  ]
  for (const { found, ids, first, kind } of logs) {
    for (const [i, id] of ids.entries()) {
      const entry = found.get(id)
      found.delete(id)
      if (entry === undefined) {
        if (kind === 'act') return `act ${id} is missing`
        missing.push({ id, submissionId: submissionIds[i] ?? '' })
      } else if (entry.falseReduction !== null) return `${nameOf(entry)} ${entry.falseReduction}`
      else if (!entry.leaf.equals(leaves.subarray((first + i) * 32, (first + i + 1) * 32)))
        return `${nameOf(entry)} was changed`
      else {
        verdict.entries += 1
        verdict.reduced += entry.isReduced ? 1 : 0
      }
    }
    for (const extra of found.values()) return `${nameOf(extra)} was added later`
  }
  verdict.gone += missing.length
  return findDeleted(db, missing)
}

const nameOf = ({ kind, id, submissionId }: ChainEntry) =>
  kind === 'act' ? `act ${id}` : `event ${id} of submission ${submissionId}`

/**
 * True if event `e` begins the log of a pruned submission anew. A daemon's event is recognized without its cause, because
 * `erase` may have changed that.
 */
const isRestorationSql = `e.from_state = e.to_state and e.attempt = 0
  and (e.who not like 'operator%' or e.cause like '${unprunedCausePrefix}%')`

/** Ignores a submission that was pruned and restored, because its log has begun again. */
async function findDeleted(
  db: Database,
  missing: readonly { id: string; submissionId: string }[],
): Promise<string | null> {
  if (missing.length === 0) return null
  const { rows } = await db.query<{ id: string; submissionId: string }>(
    `select m.id::text, m.submission_id::text as "submissionId"
     from unnest($1::bigint[], $2::uuid[]) m(id, submission_id) join outboxd.submission s on s.id = m.submission_id
     where not exists (select from outboxd.submission_event e where e.submission_id = s.id and e.id > m.id
       and ${isRestorationSql})
     order by m.id limit 1`,
    [missing.map(({ id }) => id), missing.map(({ submissionId }) => submissionId)],
  )
  const [first] = rows
  return first === undefined
    ? null
    : `event ${first.id} of submission ${first.submissionId} is missing, but its submission exists`
}

/** A batch takes the ledger some 10 ms. */
const submissionsAtOnce = 1_000

interface LogBeginnings {
  last: string | null
  lost: string | null
}

/** Necessary because an emptied block does not say whose events it had. */
async function findLogWithoutBeginning(db: Database): Promise<string | null> {
  let after: string | null = '00000000-0000-0000-0000-000000000000'
  while (after !== null) {
    const { last, lost }: LogBeginnings = await readLogBeginnings(db, after)
    if (lost !== null) return `submission ${lost} has lost the beginning of its log`
    after = last
  }
  return null
}

async function readLogBeginnings(db: Database, after: string): Promise<LogBeginnings> {
  const { rows } = await db.query<LogBeginnings>(
    `with batch as materialized (
       select id from outboxd.submission where id > $1 order by id limit ${submissionsAtOnce}
     )
     select (select id from batch order by id desc limit 1) as last, (
       select b.id from batch b where not exists (
         select from (select * from outboxd.submission_event where submission_id = b.id order by id limit 1) e
         where e.from_state is null or ${isRestorationSql}) limit 1) as lost`,
    [after],
  )
  return rows[0] ?? { last: null, lost: null }
}

async function countWaiting(
  db: Database,
  { lastEvent, lastAct }: Pick<Block, 'lastEvent' | 'lastAct'>,
): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `select (select count(*) from outboxd.submission_event where id > $1)::int
       + (select count(*) from outboxd.operator_act where id > $2)::int as n`,
    [lastEvent, lastAct],
  )
  return rows[0]?.n ?? 0
}
