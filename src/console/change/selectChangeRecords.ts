import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import { loadMappings } from '../../mapping/loadMappings.ts'
import {
  type BulkChange,
  type Chosen,
  chooseSubmissions,
  previewChange,
  readReplayCost,
} from '../../operations/bulkChange.ts'
import type { Databases } from '../../operations/databases.ts'
import { type Discarded, discardChange } from '../../operations/discard.ts'
import type { SearchText } from '../../operations/filters.ts'
import { wholeIdPattern } from '../../operations/references.ts'
import { previewReplay, type ReplayTerms, replayChange } from '../../operations/replay.ts'
import type { ConsoleParts } from '../parts.ts'
import { type Fields, readRecordsQuery } from '../records/recordsQuery.ts'
import { rowsMax } from '../records/routes.ts'
import type { ChangeRequest, KeptChange } from './changeStore.ts'

type ChangeSelection =
  | { kind: 'chosen'; change: Omit<KeptChange, 'token' | 'owner' | 'progress'> }
  | { kind: 'refused'; problems: string[] }

/** More records would take too long for a preview. The rest is mapped when it is sent. */
const triedMax = 10_000
const triedWithinMs = 15_000

export async function selectChangeRecords(
  databases: Databases,
  search: SearchText,
  { config, clock }: Pick<ConsoleParts, 'config' | 'clock'>,
  request: ChangeRequest,
): Promise<ChangeSelection> {
  const rules = changeOf(request)
  let cut: string | null = null
  const choice = { ids: request.ids, filters: request.filters, nowMs: clock.nowMs() }
  const chosen = await chooseSubmissions(databases.ledger, search, rules, choice, (message) => {
    cut = message
  })
  if (chosen.kind !== 'chosen') return { kind: 'refused', problems: chosen.problems }
  const isReplay = request.verb === 'replay'
  const would = isReplay ? await tried(databases, config, request, chosen) : { ...chosen, untried: 0 }
  const { submissions, skipped, untried } = would
  return {
    kind: 'chosen',
    change: {
      ...{ request, submissions: submissions.map(asSeen), skipped, untried, cut },
      preview: previewChange(rules, submissions, chosen.submissions.length),
      cost: isReplay ? await readReplayCost(databases, submissions.length, config.rateLimit) : null,
    },
  }
}

async function tried(
  databases: Databases,
  { mappingsDir }: Pick<ConsoleParts['config'], 'mappingsDir'>,
  { terms }: ChangeRequest,
  { submissions, skipped }: Extract<Chosen, { kind: 'chosen' }>,
) {
  const run = { signal: AbortSignal.timeout(triedWithinMs), onProgress: () => {} }
  const parts = { databases, mappings: loadMappings(mappingsDir) }
  const { done, skipped: failing } = await previewReplay(parts, submissions.slice(0, triedMax), terms, run)
  const left = new Set(failing.map(({ submission }) => submission.id))
  return {
    submissions: submissions.filter(({ id }) => !left.has(id)),
    skipped: [...skipped, ...failing],
    untried: submissions.length - done.length - failing.length,
  }
}

const asSeen = ({ id, outboxId, revision, key, state }: ListedSubmission): Discarded => ({
  ...{ id, outboxId, revision, key, state },
})

/** Reads a list's form: `do` has verb and scope, `id` the selected records. */
export function readChangeRequest(
  fields: Fields,
): { kind: 'value'; request: ChangeRequest } | { kind: 'invalid'; problem: string } {
  const [, verb, scope] = /^(replay|discard)-(ticked|all)$/.exec([fields.do ?? ''].flat()[0] ?? '') ?? []
  if (verb !== 'replay' && verb !== 'discard') return { kind: 'invalid', problem: 'The form does not say what to do.' }
  const ids = scope === 'ticked' ? [...new Set([fields.id ?? []].flat())] : []
  if (scope === 'ticked' && ids.length === 0)
    return { kind: 'invalid', problem: 'No record is ticked. Tick some, or choose all that match.' }
  if (ids.length > rowsMax || !ids.every((id) => wholeIdPattern.test(id)))
    return {
      kind: 'invalid',
      problem: `The form takes at most ${rowsMax} ticked records, each by its id. Choose all that match instead.`,
    }
  // The list's limit is a page's length, not a limit of the change.
  const { limit: _, ...filters } = scope === 'all' ? readRecordsQuery(fields).filters : {}
  return { kind: 'value', request: { verb, terms: readReplayTerms(fields), ids, filters } }
}

export function readReplayTerms(fields: Fields): ReplayTerms {
  const isOn = (name: string) => fields[name] !== undefined
  return { refresh: isOn('refresh'), evenIfArrived: isOn('even-if-arrived'), newKey: isOn('new-key') }
}

const changeOf = ({ verb, terms }: ChangeRequest): BulkChange =>
  verb === 'replay' ? replayChange(terms) : discardChange
