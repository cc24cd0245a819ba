import { createHash } from 'node:crypto'
import type { Database } from '../../postgres/database.ts'

/** An entry of one of the logs: what the chain knows of it. */
export interface ChainEntry {
  kind: 'event' | 'act'
  id: string
  /** Of an event; empty for an act. */
  submissionId: string
  /** 32 bytes. */
  leaf: Buffer
  /** Why its digest says nothing of what it shows: it claims that something of it is gone, and shows it all the same; null as a rule. */
  pretence: string | null
  /** Something of it was emptied or erased. */
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

/** The events from after one id up to another, in order, at most `limit`. */
export async function readEventEntries(
  db: Database,
  after: string,
  upTo: string,
  limit: number | null,
): Promise<ChainEntry[]> {
  const { rows } = await db.query<EventRow>(
    `select id::text, submission_id::text as "submissionId", ${time('at')} as at, from_state as "from", to_state as "to",
       attempt::text, who, cause, amounts::text, (detail #- '{former,body}' #- '{former,payload}')::text as detail,
       detail #>> '{former,body}' as body, detail #>> '{former,payload}' as payload,
       encode(detail_digest, 'hex') as "detailDigest", encode(contents_digest, 'hex') as "contentsDigest"
     from outboxd.submission_event where id > $1 and id <= $2 order by submission_event.id limit $3`,
    [after, upTo, limit],
  )
  return rows.map(eventEntry)
}

/** What stays is in the digest as it is; what may be emptied or erased by a digest of its own. */
function eventEntry(row: EventRow): ChainEntry {
  const { id, submissionId, at, from, to, attempt, who, cause, amounts } = row
  const keptCause = who.startsWith('operator') ? (cause.split(':')[0] ?? '') : ''
  const detail = row.detailDigest ?? digestOf(row.cause, row.detail)
  const contents = row.contentsDigest ?? digestOf(row.body, row.payload)
  const told = ['event', id, submissionId, at, from, to, attempt, who, keptCause, amounts, detail, contents]
  const isReduced = row.detailDigest !== null || row.contentsDigest !== null
  return { kind: 'event', id, submissionId, leaf: sha256(JSON.stringify(told)), pretence: pretenceOf(row), isReduced }
}

function pretenceOf({ who, cause, detail, body, payload, detailDigest, contentsDigest }: EventRow): string | null {
  const isErased = detail === null && (who.startsWith('operator') ? !cause.includes(':') : cause === 'erased')
  if (detailDigest !== null && !isErased) return 'says that it was erased, and is not'
  if (contentsDigest !== null && (body !== null || payload !== null)) return 'says that it was emptied, and is not'
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

/** The acts from after one id up to another, in order. */
export async function readActEntries(
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
    pretence: null,
    isReduced: false,
  }))
}

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()

/** As outboxd.digest_of in migrations/0024_chain.sql. */
const digestOf = (a: string | null, b: string | null): string =>
  sha256(`${Buffer.byteLength(a ?? '')}:${a ?? ''}${b ?? ''}`).toString('hex')

/** What a block says of its entries. */
export interface BlockContents {
  leaves: Buffer
  eventIds: readonly string[]
  submissionIds: readonly string[]
  actIds: readonly string[]
}

export const blockDigest = ({ leaves, eventIds, submissionIds, actIds }: BlockContents): Buffer =>
  sha256(Buffer.concat([leaves, Buffer.from(JSON.stringify([eventIds, submissionIds, actIds]))]))

/** What stays of a block when all of its events are gone. */
export interface BlockHead {
  number: string
  lastEvent: string
  lastAct: string
  events: number
  acts: number
  digest: Buffer
}

/** A block's own hash. @param before of the block before; empty for the first */
export const blockHash = (before: Buffer, { number, lastEvent, lastAct, events, acts, digest }: BlockHead): Buffer =>
  sha256(Buffer.concat([before, Buffer.from(JSON.stringify([number, lastEvent, lastAct, events, acts])), digest]))
