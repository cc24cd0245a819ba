import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { type Database, inTransaction } from '../../postgres/database.ts'
import { tableWriterTransactionsSql } from '../../postgres/locks.ts'

export interface ChainEntry {
  kind: 'event' | 'act'
  id: string
  submissionId: string
  leaf: Buffer
  /** Set if a digest says that a part was erased or emptied, but the part exists. */
  falseReduction: string | null
  isReduced: boolean
}

const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

interface EventRow {
  id: string
  submissionId: string
  at: string
  from: string | null
  to: string
  attempt: string
  who: string
  cause: string
  amounts: string | null
  detail: string | null
  body: string | null
  payload: string | null
  detailDigest: string | null
  contentsDigest: string | null
}

export async function readEventChainEntries(
  db: Database,
  afterId: string,
  upToId: string,
  limit: number | null,
): Promise<ChainEntry[]> {
  const { rows } = await db.query<EventRow>(
    `select id::text, submission_id::text as "submissionId", ${time('at')} as at, from_state as "from", to_state as "to",
       attempt::text, who, cause, amounts::text, (detail #- '{former,body}' #- '{former,payload}')::text as detail,
       detail #>> '{former,body}' as body, detail #>> '{former,payload}' as payload,
       encode(detail_digest, 'hex') as "detailDigest", encode(contents_digest, 'hex') as "contentsDigest"
     from outboxd.submission_event where id > $1 and id <= $2 order by submission_event.id limit $3`,
    [afterId, upToId, limit],
  )
  return rows.map(eventEntry)
}

/** Texts that may be emptied or erased enter the leaf as digests, so that the leaf stays valid without the texts. */
function eventEntry(row: EventRow): ChainEntry {
  const { id, submissionId, at, from, to, attempt, who, cause, amounts } = row
  const keptCause = who.startsWith('operator') ? (cause.split(':')[0] ?? '') : ''
  const detail = row.detailDigest ?? digestOf(row.cause, row.detail)
  const contents = row.contentsDigest ?? digestOf(row.body, row.payload)
  const told = ['event', id, submissionId, at, from, to, attempt, who, keptCause, amounts, detail, contents]
  const isReduced = row.detailDigest !== null || row.contentsDigest !== null
  return {
    kind: 'event',
    id,
    submissionId,
    leaf: sha256(JSON.stringify(told)),
    falseReduction: falseReductionOf(row),
    isReduced,
  }
}

function falseReductionOf({
  who,
  cause,
  detail,
  body,
  payload,
  detailDigest,
  contentsDigest,
}: EventRow): string | null {
  const isErased = detail === null && (who.startsWith('operator') ? !cause.includes(':') : cause === 'erased')
  if (detailDigest !== null && !isErased) return 'is marked as erased, but is not'
  if (contentsDigest !== null && (body !== null || payload !== null)) return 'is marked as emptied, but is not'
  return null
}

interface ActRow {
  id: string
  at: string
  act: string
  who: string
  account: string | null
  reason: string | null
  until: string | null
  detail: string | null
}

export async function readActChainEntries(
  db: Database,
  after: string,
  upTo: string,
  limit: number | null,
): Promise<ChainEntry[]> {
  const { rows } = await db.query<ActRow>(
    `select id::text, ${time('at')} as at, act, who, account, reason, ${time('until')} as until, detail::text
     from outboxd.operator_act where id > $1 and id <= $2 order by operator_act.id limit $3`,
    [after, upTo, limit],
  )
  return rows.map(({ id, at, act, who, account, reason, until, detail }) => ({
    kind: 'act',
    id,
    submissionId: '',
    leaf: sha256(JSON.stringify(['act', id, at, act, who, account, reason, until, detail])),
    falseReduction: null,
    isReduced: false,
  }))
}

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()

/** Must equal outboxd.digest_of in migrations/0001_ledger.sql. */
const digestOf = (a: string | null, b: string | null): string =>
  sha256(`${Buffer.byteLength(a ?? '')}:${a ?? ''}${b ?? ''}`).toString('hex')

export interface BlockContents {
  leaves: Buffer
  eventIds: readonly string[]
  submissionIds: readonly string[]
  actIds: readonly string[]
}

export const computeBlockDigest = ({ leaves, eventIds, submissionIds, actIds }: BlockContents): Buffer =>
  sha256(Buffer.concat([leaves, Buffer.from(JSON.stringify([eventIds, submissionIds, actIds]))]))

export interface BlockHeader {
  number: string
  lastEvent: string
  lastAct: string
  events: number
  acts: number
  digest: Buffer
}

export const computeBlockHash = (
  hashBefore: Buffer,
  { number, lastEvent, lastAct, events, acts, digest }: BlockHeader,
): Buffer =>
  sha256(Buffer.concat([hashBefore, Buffer.from(JSON.stringify([number, lastEvent, lastAct, events, acts])), digest]))

export interface ChainPosition {
  number: string
  lastEvent: string
  lastAct: string
  hash: Buffer
}

export const beforeFirstBlock: ChainPosition = { number: '0', lastEvent: '0', lastAct: '0', hash: Buffer.alloc(0) }

export const chainPositionColumnsSql =
  'number::text, last_event::text as "lastEvent", last_act::text as "lastAct", hash'

/** The chain's last block, which operators store elsewhere, because the database's owner can rewrite the chain. */
export interface ChainHead {
  number: string
  hash: string
}

export interface ChainAppendResult {
  /** `elsewhere`: another instance extends the chain. */
  end: 'through' | 'begun' | 'elsewhere'
  blocks: number
  /** The last head of a UTC day, if this round began the next day. */
  endOfDay: ChainHead | null
  /** Age of the oldest entry outside the chain. */
  behindMs: number
}

/** Entries of each log in one block. */
const entriesMax = 500

const waitMaxMs = 2_000
const lookAgainMs = 20

/** Locks neither log, so that no writer of the logs waits. */
export async function appendLogsToChain(ledger: pg.Pool, goOn: () => boolean): Promise<ChainAppendResult> {
  const settled = await readSettled(ledger, goOn)
  let blocks = 0
  let endOfDay: ChainHead | null = null
  let end: ChainAppendResult['end'] | null = settled === null ? 'through' : null
  while (settled !== null && end === null && goOn()) {
    const made = await inTransaction(ledger, (db) => appendBlock(db, settled))
    if (made.kind === 'appended') {
      blocks += 1
      endOfDay = made.endOfDay ?? endOfDay
    } else end = made.kind
  }
  if (end === 'through') await compact(ledger)
  return { end: end ?? 'begun', blocks, endOfDay, behindMs: await readBehindMs(ledger) }
}

interface Ids {
  event: string
  act: string
}

/** Reads the ids up to which no open transaction can still commit entries (see `tableWriterTransactionsSql`). */
async function readSettled(db: Database, goOn: () => boolean): Promise<Ids | null> {
  const { rows } = await db.query<Ids & { writers: string[] }>(
    `select coalesce((select max(id) from outboxd.submission_event), 0)::text as event,
       coalesce((select max(id) from outboxd.operator_act), 0)::text as act, array(${writersSql}) as writers`,
  )
  const { writers, ...ids } = rows[0] as Ids & { writers: string[] }
  for (let waitedMs = 0; waitedMs <= waitMaxMs && goOn(); waitedMs += lookAgainMs) {
    if (!(await areWriting(db, writers))) return ids
    await setTimeout(lookAgainMs)
  }
  return null
}

const writersSql = tableWriterTransactionsSql("'outboxd.submission_event'::regclass, 'outboxd.operator_act'::regclass")

async function areWriting(db: Database, writers: readonly string[]): Promise<boolean> {
  if (writers.length === 0) return false
  const { rowCount } = await db.query(`${writersSql} and virtualtransaction = any($1) limit 1`, [writers])
  return (rowCount ?? 0) > 0
}

type Appended = { kind: 'appended'; endOfDay: ChainHead | null } | { kind: 'through' } | { kind: 'elsewhere' }

/** Takes lock 7166, so that only one instance extends the chain at a time. */
async function appendBlock(db: Database, settled: Ids): Promise<Appended> {
  const { rows: locked } = await db.query<{ mine: boolean }>('select pg_try_advisory_xact_lock(7166) as mine')
  if (!locked[0]?.mine) return { kind: 'elsewhere' }
  const { isOfToday, ...last } = await readLastBlock(db)
  const events = await readEventChainEntries(db, last.lastEvent, settled.event, entriesMax)
  const acts = await readActChainEntries(db, last.lastAct, settled.act, entriesMax)
  if (events.length + acts.length === 0) return { kind: 'through' }
  const contents: BlockContents = {
    leaves: Buffer.concat([...events, ...acts].map(({ leaf }) => leaf)),
    eventIds: events.map(({ id }) => id),
    submissionIds: events.map(({ submissionId }) => submissionId),
    actIds: acts.map(({ id }) => id),
  }
  const head: BlockHeader = {
    number: String(BigInt(last.number) + 1n),
    lastEvent: events.at(-1)?.id ?? last.lastEvent,
    lastAct: acts.at(-1)?.id ?? last.lastAct,
    events: events.length,
    acts: acts.length,
    digest: computeBlockDigest(contents),
  }
  await db.query(
    `insert into outboxd.chain_block (number, last_event, last_act, events, acts, event_ids, submission_ids, leaves, act_ids,
       digest, hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      ...[head.number, head.lastEvent, head.lastAct, head.events, head.acts],
      ...[contents.eventIds, contents.submissionIds, contents.leaves, contents.actIds],
      ...[head.digest, computeBlockHash(last.hash, head)],
    ],
  )
  const isNewDay = last.number !== '0' && !isOfToday
  return { kind: 'appended', endOfDay: isNewDay ? { number: last.number, hash: last.hash.toString('hex') } : null }
}

async function readLastBlock(db: Database): Promise<ChainPosition & { isOfToday: boolean }> {
  const { rows } = await db.query<ChainPosition & { isOfToday: boolean }>(
    `select ${chainPositionColumnsSql}, date_trunc('day', made_at, 'UTC') = date_trunc('day', clock_timestamp(), 'UTC') as "isOfToday"
     from outboxd.chain_block order by chain_block.number desc limit 1`,
  )
  return rows[0] ?? { ...beforeFirstBlock, isOfToday: true }
}

/** Empties blocks whose events are all deleted, because only a block's digest is still needed. */
async function compact(db: Database): Promise<void> {
  await db.query(
    `with due as (
       select number from outboxd.chain_block where look_at <= now() order by look_at limit 50 for update skip locked
     ), look as (
       select b.number, b.acts = 0 and not exists (
         select from outboxd.submission_event e where e.id = any(b.event_ids)) as is_gone
       from outboxd.chain_block b join due using (number)
     )
     update outboxd.chain_block b set look_at = case when not is_gone then now() + interval '7 days' end,
       event_ids = case when not is_gone then b.event_ids end,
       submission_ids = case when not is_gone then b.submission_ids end, leaves = case when not is_gone then b.leaves end
     from look where b.number = look.number`,
  )
}

async function readBehindMs(db: Database): Promise<number> {
  const { rows } = await db.query<{ behindMs: number }>(
    `select greatest(0, extract(epoch from clock_timestamp() - least(
       (select e.at from outboxd.submission_event e where e.id > h.event order by e.id limit 1),
       (select a.at from outboxd.operator_act a where a.id > h.act order by a.id limit 1))))::float8 * 1000 as "behindMs"
     from (select coalesce(max(last_event), 0) as event, coalesce(max(last_act), 0) as act from (
       select last_event, last_act from outboxd.chain_block order by number desc limit 1) l) h`,
  )
  return rows[0]?.behindMs ?? 0
}
