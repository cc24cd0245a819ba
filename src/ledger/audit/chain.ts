import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { type Database, inTransaction } from '../../postgres/database.ts'
import { tableWritersSql } from '../../postgres/locks.ts'
import {
  type BlockContents,
  type BlockHead,
  blockDigest,
  blockHash,
  readActEntries,
  readEventEntries,
} from './chainEntries.ts'

/** Where the chain stands: to be noted elsewhere, since whoever owns the database can write all of it anew. */
export interface ChainHead {
  number: string
  /** In hexadecimal. */
  hash: string
}

/** What a round did. `elsewhere`: another instance chains. */
export interface ChainRound {
  end: 'through' | 'begun' | 'elsewhere'
  blocks: number
  /** The head with which a day (UTC) ended, where this round began another. */
  endOfDay: ChainHead | null
  /** For how long the oldest entry has waited that is not in the chain, milliseconds; 0 where none waits. */
  behindMs: number
}

/** Chains what the logs have got since; appends to them never wait for it. */
export interface Chain {
  /** @param goOn asked between blocks: false ends the round */
  runOnce(goOn: () => boolean): Promise<ChainRound>
}

/** Little enough to hold in memory, whatever replays have noted in them. */
const entriesMax = 500

/** A transaction that has written to a log ends within milliseconds, or its server ends it. */
const waitMaxMs = 2_000
const lookAgainMs = 20

export function createChain(ledger: pg.Pool): Chain {
  return {
    async runOnce(goOn) {
      const settled = await readSettled(ledger, goOn)
      let blocks = 0
      let endOfDay: ChainHead | null = null
      const conclude = async (end: ChainRound['end']): Promise<ChainRound> => {
        if (end === 'through') await compact(ledger)
        return { end, blocks, endOfDay, behindMs: await readBehindMs(ledger) }
      }
      if (settled === null) return conclude('through')
      while (goOn()) {
        const made = await inTransaction(ledger, (db) => appendBlock(db, settled))
        if (made.kind !== 'appended') return conclude(made.kind)
        blocks += 1
        endOfDay = made.endOfDay ?? endOfDay
      }
      return conclude('begun')
    },
  }
}

interface Ids {
  event: string
  act: string
}

/**
 * Up to which ids the logs are settled: no transaction that is open can still commit one below (`tableWritersSql` tells why).
 *
 * @returns null where they did not end: the next round looks again
 */
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

const writersSql = tableWritersSql("'outboxd.submission_event'::regclass, 'outboxd.operator_act'::regclass")

async function areWriting(db: Database, writers: readonly string[]): Promise<boolean> {
  if (writers.length === 0) return false
  const { rowCount } = await db.query(`${writersSql} and virtualtransaction = any($1) limit 1`, [writers])
  return (rowCount ?? 0) > 0
}

interface Last extends Ids {
  number: string
  hash: Buffer
  isOfToday: boolean
}

type Appended = { kind: 'appended'; endOfDay: ChainHead | null } | { kind: 'through' } | { kind: 'elsewhere' }

/** 7166: one chains at a time. */
async function appendBlock(db: Database, settled: Ids): Promise<Appended> {
  const { rows: locked } = await db.query<{ mine: boolean }>('select pg_try_advisory_xact_lock(7166) as mine')
  if (!locked[0]?.mine) return { kind: 'elsewhere' }
  const last = await readLast(db)
  const events = await readEventEntries(db, last.event, settled.event, entriesMax)
  const acts = await readActEntries(db, last.act, settled.act, entriesMax)
  if (events.length + acts.length === 0) return { kind: 'through' }
  const contents: BlockContents = {
    leaves: Buffer.concat([...events, ...acts].map(({ leaf }) => leaf)),
    eventIds: events.map(({ id }) => id),
    submissionIds: events.map(({ submissionId }) => submissionId),
    actIds: acts.map(({ id }) => id),
  }
  const head: BlockHead = {
    number: String(BigInt(last.number) + 1n),
    lastEvent: events.at(-1)?.id ?? last.event,
    lastAct: acts.at(-1)?.id ?? last.act,
    events: events.length,
    acts: acts.length,
    digest: blockDigest(contents),
  }
  await db.query(
    `insert into outboxd.chain_block (number, last_event, last_act, events, acts, event_ids, submission_ids, leaves, act_ids,
       digest, hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      ...[head.number, head.lastEvent, head.lastAct, head.events, head.acts],
      ...[contents.eventIds, contents.submissionIds, contents.leaves, contents.actIds],
      ...[head.digest, blockHash(last.hash, head)],
    ],
  )
  const isNewDay = last.number !== '0' && !last.isOfToday
  return { kind: 'appended', endOfDay: isNewDay ? { number: last.number, hash: last.hash.toString('hex') } : null }
}

async function readLast(db: Database): Promise<Last> {
  const { rows } = await db.query<Last>(
    `select number::text, last_event::text as event, last_act::text as act, hash,
       date_trunc('day', made_at, 'UTC') = date_trunc('day', clock_timestamp(), 'UTC') as "isOfToday"
     from outboxd.chain_block order by chain_block.number desc limit 1`,
  )
  return rows[0] ?? { number: '0', event: '0', act: '0', hash: Buffer.alloc(0), isOfToday: true }
}

/** Of a block all of whose events are gone, its digest is enough. */
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
