import { setTimeout } from 'node:timers/promises'
import type { StatedActor } from '../../ledger/operator/acts.ts'
import { loadMappings } from '../../mapping/loadMappings.ts'
import type { BulkRun, CarriedOut } from '../../operations/bulkChange.ts'
import { discardSubmissions } from '../../operations/discard.ts'
import { replaySubmissions } from '../../operations/replay.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import type { ConsoleParts } from '../parts.ts'
import type { KeptChange } from './keptChanges.ts'

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
