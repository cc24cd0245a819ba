import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { StatedActor } from '../../ledger/operator/operator.ts'
import { loadMappings } from '../../mapping/loadMappings.ts'
import type { BulkChange, BulkRun, CarriedOut, Skipped } from '../../operations/bulkChange.ts'
import { type Databases, operatorOf } from '../../operations/databases.ts'
import { type Discarded, discardSubmissions } from '../../operations/discard.ts'
import type { FilterOptions } from '../../operations/filters.ts'
import type { ChangePreview, Cost } from '../../operations/previewChange.ts'
import { type ReplayTerms, replaySubmissions } from '../../operations/replay.ts'
import { troubleOf } from '../errors.ts'
import type { ConsoleParts } from '../parts.ts'

/** What a form asks for, and for which records. */
export interface ChangeRequest {
  verb: BulkChange['verb']
  terms: ReplayTerms
  /** The records that were ticked; none: all that the filters match. */
  ids: readonly string[]
  filters: FilterOptions
}

/** A change in bulk between its preview and its end: what was previewed is what is confirmed, record by record. */
export interface KeptChange {
  readonly token: string
  /** Whose form may confirm it: the token of their session. */
  readonly owner: string
  readonly request: ChangeRequest
  /** What would be done, each record as it was seen. */
  readonly submissions: readonly Discarded[]
  /** What would be left alone. */
  readonly skipped: readonly Skipped[]
  readonly preview: ChangePreview
  /** Null for a discard. */
  readonly cost: Cost | null
  /** How many records of a replay were not mapped beforehand, because there were too many. */
  readonly untried: number
  /** Said if a search for a text did not look at all records. */
  readonly cut: string | null
  progress: ChangeProgress
}

export type ChangeProgress =
  | { kind: 'previewed' }
  | { kind: 'running'; looked: number }
  | { kind: 'over'; result: CarriedOut }
  /** It ended early: what was done by then is done. */
  | { kind: 'failed'; looked: number; message: string }

const changesMax = 50
/** Each takes a hundred bytes and a few words. */
const submissionsMax = 300_000

/** Keeps a few changes in memory. If there is no room, the oldest of the owner who has most goes, unless it is running. */
export function keepChanges() {
  const kept = new Map<string, KeptChange>()
  const held = () => [...kept.values()].reduce((sum, { submissions }) => sum + submissions.length, 0)

  function oldestOfMost(): KeptChange | undefined {
    const idle = [...kept.values()].filter(({ progress }) => progress.kind !== 'running')
    const owners = [...Map.groupBy(idle, ({ owner }) => owner).values()]
    return owners.reduce((most, own) => (own.length > most.length ? own : most), [])[0]
  }

  return {
    keep(change: Omit<KeptChange, 'token' | 'progress'>): KeptChange {
      while (kept.size >= changesMax || held() + change.submissions.length > submissionsMax) {
        const oldest = oldestOfMost()
        if (oldest === undefined) break
        kept.delete(oldest.token)
      }
      const token = randomBytes(18).toString('base64url')
      const made: KeptChange = { ...change, token, progress: { kind: 'previewed' } }
      kept.set(token, made)
      return made
    },
    /** @returns undefined if there is no change of that token, or it is another viewer's */
    find(token: string, owner: string): KeptChange | undefined {
      const found = kept.get(token)
      return found?.owner === owner ? found : undefined
    },
  }
}

/** Most changes end within this time, and their end is the answer. */
const answerWithinMs = 1_500

/** Carries out changes that were confirmed. A change that takes longer goes on after the answer. */
export function createChangeRunner({ databases, config }: Pick<ConsoleParts, 'databases' | 'config'>) {
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()

  async function run(change: KeptChange, actor: StatedActor): Promise<void> {
    let looked = 0
    const onProgress = (now: number) => {
      looked = now
      change.progress = { kind: 'running', looked }
    }
    try {
      const result = await carryOut(await databases(), config, change, actor, { signal: stopping.signal, onProgress })
      change.progress = { kind: 'over', result }
    } catch (error) {
      change.progress = { kind: 'failed', looked, message: troubleOf(error) }
    }
  }

  return {
    /** Begins a change, unless it has begun before, and returns when it has ended or after a moment. */
    async start(change: KeptChange, actor: StatedActor): Promise<void> {
      if (change.progress.kind !== 'previewed') return
      change.progress = { kind: 'running', looked: 0 }
      const work = run(change, actor)
      running.add(work)
      void work.then(() => running.delete(work))
      await Promise.race([work, setTimeout(answerWithinMs, undefined, { ref: false })])
    },
    /** Lets changes that run finish the batch in hand. */
    async stop(): Promise<void> {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

function carryOut(
  databases: Databases,
  { mappingsDir }: ConsoleParts['config'],
  { request: { verb, terms }, submissions }: KeptChange,
  actor: StatedActor,
  run: BulkRun,
): Promise<CarriedOut> {
  const operator = operatorOf(databases, actor)
  if (verb === 'discard') return discardSubmissions(operator, submissions, run)
  return replaySubmissions({ databases, operator, mappings: loadMappings(mappingsDir) }, submissions, terms, run)
}
