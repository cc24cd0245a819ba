import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { StatedActor } from '../../ledger/operator/operator.ts'
import { loadMappings } from '../../mapping/loadMappings.ts'
import type {
  BulkChange,
  BulkRun,
  CarriedOut,
  ChangePreview,
  ReplayCost,
  Skipped,
} from '../../operations/bulkChange.ts'
import { type Databases, operatorOf } from '../../operations/databases.ts'
import { type Discarded, discardSubmissions } from '../../operations/discard.ts'
import type { FilterOptions } from '../../operations/filters.ts'
import { type ReplayTerms, replaySubmissions } from '../../operations/replay.ts'
import { consoleErrorMessage } from '../errors.ts'
import type { ConsoleParts } from '../parts.ts'

export interface ChangeRequest {
  verb: BulkChange['verb']
  terms: ReplayTerms
  /** The selected records; empty for all that the filters match. */
  ids: readonly string[]
  filters: FilterOptions
}

/** A bulk change from its preview to its end. Changes only the previewed records. */
export interface KeptChange {
  readonly token: string
  /** The token of the session that may confirm it. */
  readonly owner: string
  readonly request: ChangeRequest
  readonly submissions: readonly Discarded[]
  readonly skipped: readonly Skipped[]
  readonly preview: ChangePreview
  readonly cost: ReplayCost | null
  /** Number of records that were not mapped beforehand, because there are too many. */
  readonly untried: number
  /** Set if a search did not read all records. */
  readonly cut: string | null
  progress: ChangeProgress
}

type ChangeProgress =
  | { kind: 'previewed' }
  | { kind: 'running'; looked: number }
  | { kind: 'over'; result: CarriedOut }
  | { kind: 'failed'; looked: number; message: string }

const changesMax = 50
const submissionsMax = 300_000

/** Keeps changes in memory. If it is full, the owner with most changes loses the oldest that is not running. */
export function createChangeStore() {
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
    find(token: string, owner: string): KeptChange | undefined {
      const found = kept.get(token)
      return found?.owner === owner ? found : undefined
    },
  }
}

const answerWithinMs = 1_500

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
      change.progress = { kind: 'failed', looked, message: consoleErrorMessage(error) }
    }
  }

  return {
    async start(change: KeptChange, actor: StatedActor): Promise<void> {
      if (change.progress.kind !== 'previewed') return
      change.progress = { kind: 'running', looked: 0 }
      const work = run(change, actor)
      running.add(work)
      void work.then(() => running.delete(work))
      await Promise.race([work, setTimeout(answerWithinMs, undefined, { ref: false })])
    },
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
