import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import type { StatedActor } from '../../ledger/operator/operator.ts'
import { loadMappings } from '../../mapping/loadMappings.ts'
import type { BulkRun, CarriedOut, Skipped } from '../../operations/bulkChange.ts'
import type { Discarded } from '../../operations/discard.ts'
import { discardSubmissions } from '../../operations/discard.ts'
import type { ChangePreview, Cost } from '../../operations/previewChange.ts'
import { replaySubmissions } from '../../operations/replay.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import type { ConsoleParts } from '../parts.ts'
import type { ChangeRequest } from './chooseChange.ts'

/** A change in bulk between its preview and its end: what was previewed is what is confirmed, record by record. */
export interface KeptChange {
  readonly token: string
  /** Whose form may confirm it: the token of their session. */
  readonly owner: string
  readonly request: ChangeRequest
  /** What would be done, each as it was seen. */
  readonly submissions: readonly Discarded[]
  /** What would be left alone. */
  readonly skipped: readonly Skipped[]
  readonly preview: ChangePreview
  /** Of a replay. */
  readonly cost: Cost | null
  /** How many of a replay's were too many to map beforehand: what of these does not map is left alone when it comes to it. */
  readonly untried: number
  /** Where a search for a text did not look at all of them. */
  readonly cut: string | null
  readonly chosenMs: number
  progress: ChangeProgress
}

export type ChangeProgress =
  | { kind: 'previewed' }
  | { kind: 'running'; looked: number }
  | { kind: 'over'; result: CarriedOut }
  /** It ended early: what was done by then is done. */
  | { kind: 'failed'; looked: number; message: string }

/** Keeps a few changes in memory. If there is no room, the oldest of whoever has most goes, unless it is running. */
export interface KeptChanges {
  keep(change: Omit<KeptChange, 'token' | 'chosenMs' | 'progress'>): KeptChange
  /** @returns undefined where there is none of that token, or it is another's */
  find(token: string, owner: string): KeptChange | undefined
}

const changesMax = 50
/** A hundred bytes and a few words each. */
const submissionsMax = 300_000

export function keepChanges({ nowMs }: Pick<Clock, 'nowMs'>): KeptChanges {
  const kept = new Map<string, KeptChange>()
  const held = () => [...kept.values()].reduce((sum, { submissions }) => sum + submissions.length, 0)
  return {
    keep(change) {
      while (kept.size >= changesMax || held() + change.submissions.length > submissionsMax) {
        const idle = [...kept.values()].filter(({ progress }) => progress.kind !== 'running')
        const owners = [...Map.groupBy(idle, ({ owner }) => owner).values()]
        const [oldest] = owners.reduce((most, own) => (own.length > most.length ? own : most), [])
        if (oldest === undefined) break
        kept.delete(oldest.token)
      }
      const token = randomBytes(18).toString('base64url')
      const made: KeptChange = { ...change, token, chosenMs: nowMs(), progress: { kind: 'previewed' } }
      kept.set(token, made)
      return made
    },
    find(token, owner) {
      const found = kept.get(token)
      return found?.owner === owner ? found : undefined
    },
  }
}

/** Carries changes out that were confirmed; those that take long go on after the answer. */
export interface ChangeRunner {
  /** Begins, and comes back when it is through or after a moment; a change that has begun before is left to its course. */
  start(change: KeptChange, actor: StatedActor): Promise<void>
  /** Has those that run finish the batch in hand. */
  stop(): Promise<void>
}

/** Most changes are through by then, and their end is the answer. */
const answerWithinMs = 1_500

/** @param explain what an error means, in words for the page */
export function createChangeRunner(
  { store, config }: Pick<ConsoleParts, 'store' | 'config'>,
  explain: (error: unknown) => string,
): ChangeRunner {
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()

  async function run(change: KeptChange, actor: StatedActor): Promise<void> {
    let looked = 0
    const onProgress = (now: number) => {
      looked = now
      change.progress = { kind: 'running', looked }
    }
    try {
      const result = await carryOut(await store(), config, change, actor, { signal: stopping.signal, onProgress })
      change.progress = { kind: 'over', result }
    } catch (error) {
      change.progress = { kind: 'failed', looked, message: explain(error) }
    }
  }

  return {
    async start(change, actor) {
      if (change.progress.kind !== 'previewed') return
      change.progress = { kind: 'running', looked: 0 }
      const work = run(change, actor)
      running.add(work)
      void work.then(() => running.delete(work))
      await Promise.race([work, setTimeout(answerWithinMs, undefined, { ref: false })])
    },
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

function carryOut(
  store: OperatorStore,
  { mappingsDir }: ConsoleParts['config'],
  { request: { verb, terms }, submissions }: KeptChange,
  actor: StatedActor,
  run: BulkRun,
): Promise<CarriedOut> {
  const changes = store.actingAs(actor)
  if (verb === 'discard') return discardSubmissions(changes, submissions, run)
  return replaySubmissions({ store, changes, mappings: loadMappings(mappingsDir) }, submissions, terms, run)
}
