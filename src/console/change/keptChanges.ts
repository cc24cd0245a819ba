import { randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { CarriedOut, Skipped } from '../../operations/bulkChange.ts'
import type { Discarded } from '../../operations/discard.ts'
import type { ChangePreview, Cost } from '../../operations/previewChange.ts'
import type { ChangeRequest } from './changeRequest.ts'

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
