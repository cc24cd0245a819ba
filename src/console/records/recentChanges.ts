import { randomUUID } from 'node:crypto'
import type { BulkChangeRules, BulkOutcome } from '../../operations/bulkChange.ts'
import { BoundedMap } from '../bounds.ts'
import { RequestRefused } from '../errors.ts'

/** What became of a change, so that a link leads to exactly its records. */
export interface RecentChange extends BulkOutcome {
  verb: BulkChangeRules['verb']
  /** Records of the preview that are neither done nor skipped. */
  rest: number
}

const keptMax = 200

/** Kept until the console ends or 200 changes followed. Then Activity names the records. */
export class RecentChanges {
  readonly #changes = new BoundedMap<string, RecentChange>(keptMax)

  /** @returns the name by which `get` finds it */
  add(change: RecentChange): string {
    const name = randomUUID()
    this.#changes.set(name, change)
    return name
  }

  /** @throws RequestRefused */
  get(name: string): RecentChange {
    const change = this.#changes.get(name)
    if (change === undefined)
      throw new RequestRefused(404, 'This console no longer knows which records that change had. Activity names them.')
    return change
  }
}
