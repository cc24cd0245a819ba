import type { Arrival, EventRow, History, LedgerRow, LostSpan, OutboxRow } from './history.ts'
import type { Written } from './workload.ts'

/** A broken promise of the guarantee, with the record and its evidence. */
export interface Violation {
  what: string
  case: Case | null
  /** The record that it was compared with. */
  beside?: Case
  /** The document's versions, rows and requests, one per line. */
  document?: string[]
}

/** One record with its row, submissions, events and requests. */
export interface Case {
  row: OutboxRow
  written: Written
  submissions: LedgerRow[]
  events: EventRow[]
  arrivals: Arrival[]
  /** Requests whose claim was lost by a failover or a restore, so that the ledger does not know them. */
  forgotten: ReadonlySet<Arrival>
  /** True if the row was written back, but the ledger then lost that commit. */
  isRowAhead: boolean
}

/** Finds violations of the guarantee in the evidence. Pure. */
export function findViolations(evidence: History): Violation[] {
  const cases = casesOf(evidence)
  return [
    ...overall(evidence, cases),
    ...cases.flatMap((each) => check(each).map((what) => ({ what, case: each }))),
    ...keyOrder(cases),
  ]
}

function casesOf(history: History): Case[] {
  const requests = Map.groupBy(history.arrivals, ({ marker }) => marker)
  const caseOf = createCaseCollector(history)
  return history.outbox.map((row) => {
    const known = history.written.get(row.marker)
    if (!known) throw new Error(`nobody wrote the outbox row ${row.outboxId}`)
    return caseOf(row, known, requests.get(row.marker) ?? [])
  })
}

/** Returns a function that collects what the ledger knows about a row. */
export function createCaseCollector({ ledger, events, lost = [] }: History) {
  const submissions = Map.groupBy(ledger, ({ outboxId }) => outboxId)
  const steps = Map.groupBy(events, ({ submissionId }) => submissionId)
  return (row: OutboxRow, written: Written, arrivals: Arrival[]): Case => {
    const mine = submissions.get(row.outboxId) ?? []
    return {
      row,
      written,
      submissions: mine,
      events: mine.flatMap(({ id }) => steps.get(id) ?? []),
      arrivals,
      forgotten: new Set(arrivals.filter((arrival) => isLost(arrival, lost))),
      isRowAhead: row.toldUs !== null && isWithin(row.toldUs, lost),
    }
  }
}

/** True if the request arrived in a time span whose claims were lost. */
export function isLost({ arrivedUs }: Arrival, lost: readonly LostSpan[]): boolean {
  return isWithin(arrivedUs, lost)
}

function isWithin(atUs: number, spans: readonly LostSpan[]): boolean {
  return spans.some(({ fromUs, untilUs }) => atUs >= fromUs && atUs <= untilUs)
}

function overall(evidence: History, cases: Case[]): Violation[] {
  const violation = (what: string): Violation => ({ what, case: null })
  const committed = new Set([
    ...cases.map(({ row }) => row.marker),
    ...evidence.documents.versions.map(({ marker }) => marker),
  ])
  const strangers = evidence.arrivals.filter(({ marker }) => !committed.has(marker))
  const outboxIds = new Set([...evidence.outbox, ...evidence.documents.rows].map(({ outboxId }) => outboxId))
  const completed = [...evidence.outbox, ...evidence.documents.rows].filter(
    ({ status }) => status === 'completed',
  ).length
  const orphans = evidence.ledger.filter(({ outboxId }) => !outboxIds.has(outboxId))
  return [
    ...strangers.map(({ marker, sequence, status }) =>
      violation(
        `the service got ${marker} (POST ${sequence}, answered ${status}), which was never committed to the outbox`,
      ),
    ),
    ...orphans.map(({ id }) => violation(`the submission ${id} has no outbox row`)),
    // The ERP may have refused or ignored a few marks.
    ...(evidence.unmarked > completed / 4
      ? [violation(`${evidence.unmarked} of ${completed} completed rows were captured without a mark`)]
      : []),
    ...(evidence.requestsMost > evidence.requestsAllowed
      ? [violation(`${evidence.requestsMost} requests in a window, ${evidence.requestsAllowed} are allowed`)]
      : []),
    ...(evidence.throttledUnasked > 0
      ? [violation(`the service had to throttle ${evidence.throttledUnasked} times`)]
      : []),
  ]
}

const ends = new Set(['completed', 'failed', 'rejected', 'uncertain', 'discarded'])

/** Checks that the row has one submission, which ended by allowed steps, and that row and ledger agree. */
export function checkRow(each: Case): string[] {
  const [submission, ...others] = each.submissions
  if (!submission) return withoutSubmission(each)
  if (others.length > 0) return [`the outbox row has ${others.length + 1} submissions`]
  if (!ends.has(submission.state)) return [`it has not come to an end: ${submission.state}`]
  return [...row(each, submission), ...(submission.isPruned ? pruned(submission) : path(each.events, submission))]
}

function check(each: Case): string[] {
  const [submission] = each.submissions
  const wrong = checkRow(each)
  if (!submission || each.submissions.length > 1 || !ends.has(submission.state)) return wrong
  return [...wrong, ...requests(each, submission), ...effects(each, submission), ...outcomeAnomalies(each, submission)]
}

/** Checks a row whose submission a restore lost, by what the row and the service say. */
function withoutSubmission({ row, arrivals, isRowAhead }: Case): string[] {
  if (!isRowAhead || !['completed', 'discarded'].includes(row.status))
    return ['the outbox row has no submission: it was lost']
  const effects = arrivals.filter(({ effectId }) => effectId !== null)
  return row.status === 'discarded' || effects.some(({ effectId }) => effectId === row.transactionId)
    ? findRepeatedEffects(effects)
    : ['the outbox row has no submission, and the service not its transaction']
}

/** Checks that the outbox row agrees with the ledger. */
function row({ row: outbox, isRowAhead }: Case, ledger: LedgerRow): string[] {
  const wrong: string[] = []
  // An operator discarded the record, and the ledger then lost that commit. The row stays discarded.
  if (isRowAhead && outbox.status === 'discarded') return wrong
  if (ledger.reportDue) wrong.push('its outbox row was not told')
  if (outbox.status !== ledger.state) wrong.push(`the outbox row says ${outbox.status}, the ledger ${ledger.state}`)
  if (outbox.transactionId !== ledger.transactionId) wrong.push('the outbox row has another transaction id')
  if (!ledger.isPruned && outbox.errorCode !== ledger.errorCode) wrong.push('the outbox row has another error code')
  return wrong
}

/** The allowed steps, including those of `recover`: to uncertain, or to the state that the row says. */
const ways: Record<string, readonly string[]> = {
  // Discarded: a document that is unchanged or must not be sent.
  none: ['queued', 'rejected', 'uncertain', 'accepted', 'completed', 'discarded'],
  queued: ['sending', 'uncertain', 'accepted', 'completed'],
  sending: ['queued', 'sending', 'accepted', 'completed', 'failed', 'rejected', 'uncertain'],
  accepted: ['accepted', 'queued', 'completed', 'failed', 'uncertain'],
  // Queued: its claim was lost, and `recover` knows that.
  uncertain: ['discarded', 'accepted', 'completed', 'queued'],
  // An operator corrects a wrong transaction id.
  completed: ['accepted', 'uncertain', 'queued'],
  failed: ['accepted', 'completed', 'uncertain'],
  rejected: ['accepted', 'completed'],
}

/** Checks that the events are one path through the state machine. A write with an old fence would leave a gap. */
function path(events: EventRow[], submission: LedgerRow): string[] {
  const wrong: string[] = []
  let before: string | null = null
  let attempt = 0
  for (const event of events) {
    if (event.from !== before)
      wrong.push(`a step from ${event.from} although it was ${before}: written under an old fence`)
    const isSuperseded = event.to === 'discarded' && event.cause === 'superseded' && event.from !== null
    if (!isSuperseded && !ways[event.from ?? 'none']?.includes(event.to))
      wrong.push(`a step from ${event.from} to ${event.to}`)
    if (event.from === 'queued' && event.to === 'sending') attempt += 1
    if (event.attempt !== attempt) wrong.push(`a step of attempt ${event.attempt} during attempt ${attempt}`)
    before = event.to
  }
  if (before !== submission.state) wrong.push(`the last step led to ${before}, but it is ${submission.state}`)
  if (attempt !== submission.attempt)
    wrong.push(`${attempt} attempts in the events, ${submission.attempt} in the ledger`)
  return wrong
}

/** Checks that only completed and discarded records were pruned. */
function pruned({ state }: LedgerRow): string[] {
  return state === 'completed' || state === 'discarded' ? [] : [`it was pruned although it was ${state}`]
}

/** Checks that each request was claimed before it was sent, and has the amount that the ERP wrote. */
function requests({ arrivals, events, written, forgotten }: Case, submission: LedgerRow): string[] {
  const wrong: string[] = []
  const commitments = events.filter(({ to, from }) => from === 'queued' && to === 'sending')
  for (const arrival of arrivals)
    if (arrival.amount !== written.amount) wrong.push(`${written.amount} arrived as ${arrival.amount}`)
  const known = arrivals.filter((arrival) => !forgotten.has(arrival))
  known.forEach((arrival, i) => {
    if (!submission.isPruned && commitments.filter(({ atUs }) => atUs <= arrival.arrivedUs).length < i + 1)
      wrong.push(`request ${arrival.sequence} arrived before it was committed to`)
  })
  const keys = new Set(known.map(({ idempotencyKey }) => idempotencyKey)).size
  if (!submission.isPruned && keys > 1 + submission.renewedKeys + submission.resubmissions)
    wrong.push(`it was sent under ${keys} keys`)
  return wrong
}

/** Checks the record's effects at the service against its state in the ledger. */
function effects({ arrivals, forgotten }: Case, submission: LedgerRow): string[] {
  const made = arrivals.filter(({ effectId }) => effectId !== null)
  const wrong = findRepeatedEffects(made)
  // After lost commits, the ledger may only know the last effect but one.
  const last =
    made.findLast((each) => !forgotten.has(each) || each.effectId === submission.transactionId) ?? made.at(-1)
  if (submission.state === 'rejected' && made.length > 0) wrong.push('rejected, but it had an effect')
  if (submission.state === 'completed' || (submission.state === 'failed' && submission.transactionId !== null)) {
    if (last?.effectId !== submission.transactionId) wrong.push('the service does not have its transaction')
  }
  if (submission.state === 'failed' && submission.transactionId === null && made.length > 0 && !last?.errorCode)
    wrong.push('failed, but it had an effect')
  if (submission.state === 'completed' && last?.errorCode) wrong.push(`completed, but the service failed it`)
  return wrong
}

/** Finds repeated effects, which are only allowed after the service failed the one before with E003. */
export function findRepeatedEffects(made: readonly Arrival[]): string[] {
  return made.slice(1).flatMap((effect, i) => {
    const before = made[i]
    const mayRepeat = before?.errorCode === 'E003' && (before.doneUs ?? 0) <= effect.arrivedUs
    return mayRepeat ? [] : [`sent twice: ${before?.effectId} and ${effect.effectId}`]
  })
}

/** Checks that a record has the outcome of its kind. Every record that was sent may also be uncertain or discarded. */
function outcomeAnomalies({ written, arrivals }: Case, submission: LedgerRow): string[] {
  const { state, errorCode, error } = submission
  const became = `it became ${state} ${errorCode ?? ''} (${error ?? ''})`
  if (written.outcome === 'unmappable' || written.outcome === 'unreadable')
    return state === 'rejected' && arrivals.length === 0 ? [] : [`it cannot be mapped or read, but ${became}`]
  if (state === 'uncertain' || state === 'discarded') return []
  const servedBadly = arrivals.filter(({ status }) => status === 500).length >= 4
  if (servedBadly && state === 'failed') return []
  const expected = {
    completed: state === 'completed',
    // A fault may have changed the body of the 400, so that its code is missing.
    'unknown-customer':
      state === 'rejected' && (errorCode === 'E001' || arrivals.some((each) => each.faultId !== null)),
    'fails-e001': state === 'failed' && errorCode === 'E001',
    'fails-e003': state === 'failed' && errorCode === 'E003',
    'fails-long': state === 'failed' && errorCode?.startsWith('X'),
  }[written.outcome]
  return expected ? [] : [`it should be ${written.outcome}, but ${became}`]
}

/** Checks that records of a key were captured in order, and sent after the one before was accepted or ended. */
function keyOrder(cases: Case[]): Violation[] {
  const keyed = Map.groupBy(
    cases.filter(({ row }) => row.key !== null),
    ({ row }) => row.key,
  )
  return [...keyed.values()].flatMap((line) =>
    line.slice(1).flatMap((each, i) => {
      const before = line[i] as Case
      const [mine, its] = [each.submissions[0], before.submissions[0]]
      if (!mine || !its || mine.isPruned || its.isPruned) return []
      // The ledger lost the record, and the ERP set the row back. The record is uncertain and will not be sent.
      if (mine.seq < its.seq && before.events[0]?.to === 'uncertain') return []
      if (mine.seq < its.seq)
        return [{ what: `captured before ${before.row.outboxId} of its key`, case: each, beside: before }]
      const sentUs = each.events.find(({ to }) => to === 'sending')?.atUs ?? Number.POSITIVE_INFINITY
      const freeUs = before.events.find(({ to }) => to === 'accepted' || (ends.has(to) && to !== 'uncertain'))?.atUs
      return freeUs === undefined || sentUs >= freeUs
        ? []
        : [{ what: `sent before ${before.row.outboxId} of its key was accepted or ended`, case: each, beside: before }]
    }),
  )
}
