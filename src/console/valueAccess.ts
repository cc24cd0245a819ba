import type { Clock } from '../clock.ts'
import { logOperatorAct } from '../ledger/operator/operator.ts'
import { searchSubmissionTexts } from '../ledger/operator/search.ts'
import { selectSubmissions } from '../ledger/operator/selectSubmissions.ts'
import { createOperator } from '../operations/databases.ts'
import type { SearchByText } from '../operations/filters.ts'
import { BoundedMap } from './bounds.ts'
import type { Viewer } from './guard/installGuard.ts'
import type { ConsoleParts } from './parts.ts'

/**
 * Pages mask values. If a viewer asks for values, this is logged first, and then the values show for a quarter of an
 * hour. With --read-only, the console's own log has the entry, because the ledger cannot be written.
 */

interface ValueAccess {
  act: 'show' | 'search' | 'download'
  /** `id` is null if the row was not captured. */
  records: readonly { id: string | null; outboxId: string; type: string }[]
  /** Number of further records. */
  unnamed: number
  /** Does not contain the text of a search. */
  detail?: Record<string, string | number>
}

/** Records that an entry of the log names. It counts the others. */
export const namedMax = 100

/**
 * Call this before values are shown.
 * @throws Error if the log cannot be written: show nothing then
 */
export async function logValuesShown(
  { databases, say }: ConsoleParts,
  { who, canChange }: Viewer,
  { act, records, unnamed, detail }: ValueAccess,
): Promise<void> {
  const named = records.map(({ id, outboxId, type }) => ({ submission: id, outboxId, type }))
  const noted = { ...detail, records: named, ...(unnamed !== 0 && { unnamed }) }
  if (!canChange) return say(`${who}: ${act} of values ${JSON.stringify(noted)}`)
  const { ledger, actor } = createOperator(await databases(), { who, reason: null })
  await logOperatorAct(ledger, actor, act, noted)
}

/**
 * Logs each search, because repeated searches reveal masked values piece by piece. The entry names the records that
 * were read, or only those found if over 100 were read.
 */
export function createLoggedSearch(parts: ConsoleParts, viewer: Viewer): SearchByText {
  return async (filter, text, bounds) => {
    const { ledger } = await parts.databases()
    using _ = parts.searches.begin()
    const found = await searchSubmissionTexts(ledger, filter, text, bounds)
    const { ids, lookedAt } = found
    const isFew = lookedAt <= namedMax
    const records = await selectSubmissions(ledger, isFew ? filter : { ...filter, among: ids }, namedMax)
    const unnamed = isFew ? 0 : ids.length - records.length
    await logValuesShown(parts, viewer, { act: 'search', records, unnamed, detail: { lookedAt, found: ids.length } })
    return found
  }
}

export const maskedValuesNote = ({ canChange }: Pick<Viewer, 'canChange'>): string =>
  `Values are masked, because they may be personal. ${
    canChange
      ? 'If you ask for them, the audit log notes it.'
      : 'If you ask for them, this console’s own log notes it. Nothing is written to the ledger.'
  }`

const shownForMs = 15 * 60_000
const shownMax = 2_000

export class UnmaskPermissions {
  readonly #clock: Pick<Clock, 'nowMs'>
  readonly #untilMs = new BoundedMap<string, number>(shownMax)

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock
  }

  show(viewer: Viewer, name: string): void {
    this.#untilMs.set(permissionKey(viewer, name), this.#clock.nowMs() + shownForMs)
  }

  hide(viewer: Viewer, name: string): void {
    this.#untilMs.delete(permissionKey(viewer, name))
  }

  isShown(viewer: Viewer, name: string): boolean {
    return (this.#untilMs.get(permissionKey(viewer, name)) ?? 0) > this.#clock.nowMs()
  }
}

const permissionKey = ({ session }: Viewer, name: string) => `${session} ${name}`
