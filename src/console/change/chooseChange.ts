import { loadMappings } from '../../mapping/loadMappings.ts'
import { chooseSubmissions } from '../../operations/chooseSubmissions.ts'
import { previewChange, readReplayCost } from '../../operations/previewChange.ts'
import { tryReplay } from '../../operations/replay.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import type { ConsoleParts } from '../parts.ts'
import { type ChangeRequest, changeOf } from './changeRequest.ts'
import type { KeptChange } from './keptChanges.ts'

/** What was chosen, with what would be done to it; or why nothing was. */
export type Choosing =
  | { kind: 'chosen'; change: Omit<KeptChange, 'token' | 'owner' | 'chosenMs' | 'progress'> }
  | { kind: 'refused'; problems: string[] }

/** More would take longer to map than somebody waits: what does not map is found as they are sent. */
const triedMax = 500

/** Chooses the records that a change is for, as its command does, and looks at what it would do. */
export async function chooseChange(
  store: OperatorStore,
  { config, clock }: Pick<ConsoleParts, 'config' | 'clock'>,
  request: ChangeRequest,
): Promise<Choosing> {
  const rules = changeOf(request)
  let cut: string | null = null
  const choice = { ids: request.ids, filters: request.filters, nowMs: clock.nowMs() }
  const chosen = await chooseSubmissions(store, rules, choice, (message) => {
    cut = message
  })
  if (chosen.kind !== 'chosen') return { kind: 'refused', problems: chosen.problems }
  const { submissions, skipped } = chosen
  const isReplay = request.verb === 'replay'
  const seen = submissions.map(({ id, outboxId, revision, key, state }) => ({ id, outboxId, revision, key, state }))
  const isTried = isReplay && submissions.length <= triedMax
  const parts = { store, mappings: loadMappings(config.mappingsDir) }
  const run = { signal: new AbortController().signal, onProgress: () => {} }
  return {
    kind: 'chosen',
    change: {
      ...{ request, submissions: seen, skipped, cut },
      preview: previewChange(rules, submissions),
      cost: isReplay ? await readReplayCost(store, submissions.length, config.rateLimit) : null,
      tried: isTried ? await tryReplay(parts, seen, request.terms, run) : null,
    },
  }
}
