import { searchSubmissionTexts, type TextSearch } from '../ledger/operator/search.ts'
import type { SubmissionFilter } from '../ledger/operator/selectSubmissions.ts'
import { type State, states, statesNeedingAttention } from '../model/submission.ts'
import { pluralize } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { parseEpochMs } from '../time.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'

const textFilters = [
  'state',
  'code',
  'type',
  'key',
  'since',
  'until',
  'createdSince',
  'transaction',
  'containing',
  'cause',
] as const

export interface FilterOptions extends Partial<Record<(typeof textFilters)[number] | 'limit', string | undefined>> {
  mayHaveArrived?: boolean | undefined
}

export type ParsedFilters =
  | { kind: 'value'; filter: SubmissionFilter; containing: string | null; limit: number | null }
  | { kind: 'invalid'; problems: string[] }

interface FilterRules {
  defaultStates: readonly State[]
  allowedStates: readonly State[]
  whyNotAllowed: (state: State) => string
  nowMs: number
}

export function parseFilters(options: FilterOptions, rules: FilterRules): ParsedFilters {
  const problems: string[] = []
  const asked = readStates(options.state, rules, problems)
  const filter: SubmissionFilter = {
    states: asked,
    code: options.code ?? null,
    type: options.type ?? null,
    key: options.key ?? null,
    ...parseTimeSpan(options, rules.nowMs, problems),
    createdSinceMs: readBound('created-since', options.createdSince, rules.nowMs, problems),
    mayHaveArrived: options.mayHaveArrived ? true : null,
    transactionId: options.transaction?.trim() ?? null,
    cause: options.cause?.trim().toLowerCase() ?? null,
    among: null,
  }
  const containing = options.containing ?? null
  if (filter.transactionId === '')
    problems.push('--transaction needs an id, such as --transaction 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f')
  if (containing !== null && containing.trim() === '')
    problems.push('--containing needs a text, such as --containing PO-4711')
  if (filter.cause !== null && !/^[0-9a-f]{8}$/.test(filter.cause))
    problems.push(`--cause ${options.cause}: give the eight digits that \`outboxd list --by-cause\` shows`)
  const limit = parseLimitOption(options.limit, problems)
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'value', filter, containing, limit }
}

/** Without --state, chooses the states that need attention, or all states with --transaction or --containing. */
export function parseListFilters(options: FilterOptions, nowMs: number): ParsedFilters {
  const isLookup = options.transaction !== undefined || options.containing !== undefined
  const defaultStates = isLookup ? states : statesNeedingAttention
  return parseFilters(options, { defaultStates, allowedStates: states, whyNotAllowed: () => '', nowMs })
}

export function hasFilters(options: FilterOptions): boolean {
  return options.mayHaveArrived !== undefined || textFilters.some((name) => options[name] !== undefined)
}

const limitMax = 1_000_000

export function parseLimitOption(text: string | undefined, problems: string[]): number | null {
  if (text === undefined) return null
  const limit = /^\d{1,7}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > limitMax) problems.push(`--limit ${text}: give a whole number from 1 to ${limitMax}`)
  return limit
}

function readStates(text: string | undefined, rules: FilterRules, problems: string[]): readonly State[] {
  if (text === undefined) return rules.defaultStates
  return text.split(',').flatMap((word) => {
    const state = states.find((each) => each === word.trim().toLowerCase())
    if (state === undefined)
      problems.push(
        `--state ${word.trim()}: there is no such state${didYouMeanHint(word.trim(), states)} (states: ${states.join(', ')})`,
      )
    else if (!rules.allowedStates.includes(state)) problems.push(`--state ${state}: ${rules.whyNotAllowed(state)}`)
    return state ?? []
  })
}

export function parseTimeSpan(
  options: Pick<FilterOptions, 'since' | 'until'>,
  nowMs: number,
  problems: string[],
): Pick<SubmissionFilter, 'sinceMs' | 'untilMs'> {
  const sinceMs = readBound('since', options.since, nowMs, problems)
  const untilMs = readBound('until', options.until, nowMs, problems)
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs) problems.push('--since must lie before --until')
  return { sinceMs, untilMs }
}

function readBound(name: string, text: string | undefined, nowMs: number, problems: string[]): number | null {
  if (text === undefined) return null
  const ms = parseEpochMs(text, nowMs)
  if (ms === null)
    problems.push(
      `--${name} ${text}: give a date or time such as 2026-11-03 or 2026-11-03T14:00+01:00 (without an offset: UTC), or a duration such as 90m, 2h, 3d`,
    )
  return ms
}

const searchBounds = { rowsMax: 100_000, timeMaxMs: 10_000 }

export type SearchByText = (filter: SubmissionFilter, text: string, bounds: typeof searchBounds) => Promise<TextSearch>

export const createTextSearch =
  (ledger: Database): SearchByText =>
  (...asked) =>
    searchSubmissionTexts(ledger, ...asked)

/** @param onCut called if not all records were read */
export async function narrowFilterByText(
  search: SearchByText,
  { filter, containing }: Extract<ParsedFilters, { kind: 'value' }>,
  onCut: (message: string) => void,
): Promise<SubmissionFilter> {
  if (containing === null) return filter
  const { ids, lookedAt, isCut } = await search(filter, containing, searchBounds)
  if (isCut)
    onCut(
      `--containing searched only the newest ${pluralize(lookedAt, 'record')}. Older ones may match, too: narrow the search with --state, --type, --since or --until.`,
    )
  return { ...filter, among: ids }
}
