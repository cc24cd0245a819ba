import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Claim, ClaimRequest, OutcomeBatch, Slot, Submission, Transition, WrittenStep } from '../model.ts'
import { CommitUncertain, type Database, inTransaction } from '../postgres/database.ts'
import * as budget from './budget.ts'
import { type CommittedSubmission, claimQueued, isOver, readPolled, unclaim } from './claimQueued.ts'
import type { History, Leave } from './history/createHistory.ts'
import { readCommitsWait } from './history/readHistory.ts'
import { claimOpening } from './history/writeHistory.ts'
import { inLines, type KeyOnFailure } from './keyOrder.ts'
import { recordPassages } from './passages.ts'
import type { PauseBackoff } from './pauseBackoff.ts'
import type { PollPlan, Queue } from './queue.ts'
import { endRuns, type MassRefusal, noteRefusal } from './refusals.ts'
import { countRequests } from './requestCounts.ts'
import { permitsForSubmissions, permitsInHand, wantedUntilProven } from './splitPermits.ts'
import { givenId, lockTransactionIds, readHolders, withoutDuplicates } from './transactionIds.ts'
import { writeTransitions } from './writeTransitions.ts'

export interface Instance {
  id: string
  /** For the event log. */
  who: string
}

export interface WrittenOutcomes {
  written: WrittenStep[]
  heldBack: number
}

/** Claims work and settles it, each in one transaction on the ledger's database. */
export interface DispatchStore {
  /**
   * @param onCommit called with what was taken as the COMMIT leaves; whatever fails before has taken nothing
   * @throws Error when the database is away, or a lock is; after `onCommit` `unclaim` gives back what may have been committed
   */
  claim(request: ClaimRequest, onCommit: (submissions: readonly Submission[]) => void): Promise<Claim>
  /** @returns whether it is over with the claim: given back, or void. False while its COMMIT may still come true */
  unclaim(claimId: string): Promise<boolean>
  /** Claims the right to the trial without any work. @returns slots for `permits`; null where it is another's */
  claimTrial(permits: number): Promise<Slot[] | null>
  /** Takes slots for requests that are no submission's. */
  takeSlots(permits: number): Promise<Slot[]>
  /** Writes what can be written under the fences; a batch may be written twice without harm. */
  writeOutcomes(batch: OutcomeBatch): Promise<WrittenOutcomes>
}

export interface DispatchStoreDeps {
  pool: pg.Pool
  queue: Queue
  instance: Instance
  history: Pick<History, 'readLeave' | 'claimed'>
  /** How long after a slot was taken its last request may arrive. */
  reachMs: number
  /** For how long the trial is one instance's. */
  leaseMs: number
  backoff: PauseBackoff
  keyOnFailure: KeyOnFailure
}

export function createDispatchStore(deps: DispatchStoreDeps): DispatchStore {
  /** The transactions of the claims that are being committed, or whose COMMIT went unanswered. */
  const committing = new Map<string, string>()

  /** Takes what is to be sent, where the ledger has all that was sent before: as durable as COMMITs are here, or not at all. */
  async function taking<T>(work: (db: Database, leave: Leave) => Promise<T>, otherwise: T): Promise<T> {
    const take = async (db: Database) => {
      const leave = await deps.history.readLeave(db)
      return leave.mayClaim ? work(db, leave) : otherwise
    }
    return inTransaction(deps.pool, take, { opening: claimOpening, isCertain: true })
  }

  return {
    async claim(request, onCommit) {
      let isSynchronous = false
      const claimed = await taking(async (client, leave) => {
        isSynchronous = leave.isSynchronous
        const taken = await claim(deps, client, request)
        const xid = taken.submissions[0]?.xid
        if (xid !== undefined) committing.set(request.id, xid)
        onCommit(taken.submissions)
        return taken
      }, nothing)
      const last = claimed.submissions.at(-1)
      if (last !== undefined && isSynchronous) await assertWaitedFor(deps.pool)
      committing.delete(request.id)
      if (last !== undefined) deps.history.claimed(last)
      return claimed
    },
    async unclaim(claimId) {
      const xid = committing.get(claimId)
      if (xid !== undefined && !(await isOver(deps.pool, xid))) return false
      await unclaim(deps.pool, claimId, deps.instance.who)
      committing.delete(claimId)
      return true
    },
    claimTrial: (permits) => taking((client) => claimTrial(deps, client, permits), null),
    takeSlots: (permits) => taking((client) => budget.takeSlots(client, permits, deps.reachMs, deps.instance.id), []),
    writeOutcomes: (batch) => inTransaction(deps.pool, (client) => writeOutcomes(deps, client, batch)),
  }
}

/**
 * A COMMIT that waits for a standby is let go without a word when the server is told to wait for none.
 *
 * @throws CommitUncertain
 */
async function assertWaitedFor(pool: pg.Pool): Promise<void> {
  if (!(await readCommitsWait(pool))) throw new CommitUncertain('the server waits for no standby any more')
}

/** A claim as the ledger knows it. */
interface CommittedClaim extends Claim {
  submissions: CommittedSubmission[]
}

const nothing: CommittedClaim = { submissions: [], polls: [], slots: [], proves: false }

async function claim(deps: DispatchStoreDeps, db: Database, request: ClaimRequest): Promise<CommittedClaim> {
  const granted = request.trial ? await grantTrial(deps, db, request) : await grant(deps, db, request)
  if (granted === null) return nothing
  const { permits } = granted
  const slots = permits > 0 ? await budget.takeSlots(db, permits, deps.reachMs, deps.instance.id) : []
  const claimed = await claimUpTo(deps, db, granted, slots)
  const isUnused = claimed.submissions.length === 0 && (granted.proves || claimed.polls.length === 0)
  if ((request.trial || granted.proves) && isUnused) await budget.endTrial(db)
  return { ...claimed, slots, proves: granted.proves && !isUnused }
}

interface Grant extends ClaimRequest {
  proves: boolean
}

async function grantTrial({ leaseMs }: DispatchStoreDeps, db: Database, request: ClaimRequest): Promise<Grant | null> {
  return (await budget.claimTrial(db, leaseMs)) ? { ...request, proves: false } : null
}

/** After a trial records go one at a time, over all instances, until one has proven that the pauses are over. */
async function grant({ leaseMs }: DispatchStoreDeps, db: Database, request: ClaimRequest): Promise<Grant | null> {
  const way = await budget.readWay(db)
  if (way === 'paused') return null
  if (way === 'open' || request.submissions === 0) return { ...request, proves: false }
  const proves = await budget.claimProof(db, leaseMs)
  return { ...wantedUntilProven(request, proves), proves }
}

async function claimTrial(
  { leaseMs, reachMs, instance }: DispatchStoreDeps,
  db: Database,
  permits: number,
): Promise<Slot[] | null> {
  if (!(await budget.claimTrial(db, leaseMs))) return null
  const slots = permits > 0 ? await budget.takeSlots(db, permits, reachMs, instance.id) : []
  if (permits > 0 && slots.length === 0) {
    await budget.endTrial(db)
    return null
  }
  return slots
}

async function claimUpTo(deps: DispatchStoreDeps, db: Database, request: ClaimRequest, slots: Slot[]) {
  const permits = permitsInHand(request, slots)
  const wanted = permitsForSubmissions(request, permits)
  const { id, who } = { id: request.id, who: deps.instance.who }
  const submissions = wanted > 0 ? await claimQueued(db, { id, instanceId: deps.instance.id, limit: wanted, who }) : []
  const left = permits - submissions.length
  const rare = await claimPolls(deps, db, { limit: Math.min(request.rarePolls, left), rarely: true })
  const others = await claimPolls(deps, db, { limit: Math.min(request.polls, left - rare.length), rarely: false })
  return { submissions, polls: [...others, ...rare] }
}

async function claimPolls(
  { queue }: DispatchStoreDeps,
  db: Database,
  { limit, rarely }: { limit: number; rarely: boolean },
): Promise<Claim['polls']> {
  const due = limit > 0 ? await queue.fetch(db, limit, rarely) : []
  if (due.length === 0) return []
  const submissions = await readPolled(db, due)
  const byJob = new Map(submissions.map((submission) => [submission.jobId, submission]))
  const stale = due.flatMap(({ job }) => (byJob.has(job.id) ? [] : [job]))
  if (stale.length > 0) await queue.complete(db, stale)
  return due.flatMap(({ job }) => {
    const submission = byJob.get(job.id)
    return submission ? [{ submission, job }] : []
  })
}

async function writeOutcomes(deps: DispatchStoreDeps, db: Database, batch: OutcomeBatch): Promise<WrittenOutcomes> {
  const written = await writeUnderFence(deps, db, batch.transitions)
  const mass = await hearRefusals(deps, db, batch, written)
  await releaseBehind(db, batch.transitions, written, deps.keyOnFailure)
  if (batch.slots.length > 0) await budget.giveBack(db, batch.slots)
  if (batch.trialSucceeded) await budget.endPauses(db)
  else if (batch.trialEnded) await budget.endTrial(db)
  if (batch.passages.length > 0) await recordPassages(db, batch.passages)
  for (const pause of [...batch.pauses, ...mass.map((each) => each.pause)])
    await budget.raisePause(db, pause, deps.backoff)
  const { remaining } = batch
  const heldBack = remaining === null ? 0 : await budget.holdBack(db, remaining.requests, remaining.ageMs())
  const stepped = new Set(written.map(({ submissionId }) => submissionId))
  const requests = batch.transitions.flatMap(({ submission, request }) =>
    request !== null && stepped.has(submission.id) ? [request] : [],
  )
  await countRequests(db, deps.instance.id, requests)
  const queued = new Set(mass.flatMap((each) => each.queued))
  return { written: written.filter(({ submissionId }) => !queued.has(submissionId)), heldBack }
}

/** Of the records that were rejected in this batch, those that were under its fence. */
async function hearRefusals(
  { instance: { who }, keyOnFailure }: DispatchStoreDeps,
  db: Database,
  { passages, refusals }: OutcomeBatch,
  written: readonly WrittenStep[],
): Promise<MassRefusal[]> {
  const judged = passages.flatMap((passage) => (passage.judged ? [passage.resource] : []))
  if (judged.length > 0) await endRuns(db, judged)
  const ours = new Set(written.map(({ submissionId }) => submissionId))
  const mass: MassRefusal[] = []
  for (const refusal of refusals.filter(({ submissionId }) => ours.has(submissionId))) {
    const heard = await noteRefusal(db, refusal, { who, keyOnFailure })
    if (heard !== null) mass.push(heard)
  }
  return mass
}

type StepDeps = Pick<DispatchStoreDeps, 'queue' | 'instance' | 'keyOnFailure'>

/** Writes the steps that are still ours, and lets those go that waited behind them. */
export async function writeSteps(
  deps: StepDeps,
  db: Database,
  transitions: readonly Transition[],
): Promise<WrittenStep[]> {
  const written = await writeUnderFence(deps, db, transitions)
  await releaseBehind(db, transitions, written, deps.keyOnFailure)
  return written
}

/**
 * Completes the jobs that led to the steps, writes the steps whose jobs were still ours, and enqueues the next polls. What
 * was accepted under another's id is written as uncertain.
 */
async function writeUnderFence(
  { queue, instance }: StepDeps,
  db: Database,
  transitions: readonly Transition[],
): Promise<WrittenStep[]> {
  if (transitions.length === 0) return []
  const jobs = transitions.flatMap(({ job }) => (job ? [job] : []))
  const settled = jobs.length > 0 ? await queue.complete(db, jobs) : new Set<string>()
  const current = transitions.filter(({ job }) => job === null || settled.has(job.id))
  const judged = await checkIds(db, current)
  const ours = judged.map((transition) => ({
    ...transition,
    nextJobId: 'pollInMs' in transition.change ? randomUUID() : null,
  }))
  const written = await writeTransitions(db, ours, instance.who)

  const stepped = new Set(written.map((each) => each.submissionId))
  const effective = ours.filter(({ submission }) => stepped.has(submission.id))
  const plans: PollPlan[] = effective.flatMap(({ submission, change, nextJobId }) =>
    nextJobId && 'pollInMs' in change
      ? [{ jobId: nextJobId, submissionId: submission.id, inMs: change.pollInMs, rarely: change.polledRarely }]
      : [],
  )
  if (plans.length > 0) await queue.insert(db, plans)

  const changed = new Set(judged.filter((each, i) => each !== current[i]).map(({ submission }) => submission.id))
  return written.map((step) => ({ ...step, breach: changed.has(step.submissionId) ? 'duplicate_id' : null }))
}

/** Lets the next records go of the lines in which steps were written. After all records are locked: lines come last (lockJobs.ts). */
async function releaseBehind(
  db: Database,
  transitions: readonly Transition[],
  written: readonly WrittenStep[],
  keyOnFailure: KeyOnFailure,
): Promise<void> {
  const stepped = new Set(written.map(({ submissionId }) => submissionId))
  const records = transitions.flatMap(({ submission }) => (stepped.has(submission.id) ? [submission] : []))
  await inLines(db, records, keyOnFailure, async () => {})
}

/** Compares the ids that the service has just given with those that the ledger has. */
async function checkIds(db: Database, transitions: readonly Transition[]): Promise<readonly Transition[]> {
  const ids = transitions.flatMap((transition) => givenId(transition) ?? [])
  if (ids.length === 0) return transitions
  await lockTransactionIds(db, ids)
  return withoutDuplicates(transitions, await readHolders(db, ids))
}
