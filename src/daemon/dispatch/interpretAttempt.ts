import {
  type Answer,
  type AttemptResult,
  isSuccess,
  type MadeRequest,
  type Outcome,
  type Passage,
  type PauseCall,
  type PollJob,
  type PostMeaning,
  type Refusal,
  type Remaining,
  type Submission,
  statusRow,
  type TrialVerdict,
  wasSuspended,
} from '../../model.ts'
import { nothing, type Work } from './outcomeWriter.ts'

/** What is remembered from one answer to the next. */
export interface Heard {
  /** So many requests in a row have gone unanswered. */
  silentRequests: number
  /** So many records for themselves: a service may answer polls and hang on every record. */
  silentRecords: number
  /** So many trials in a row were refused for their token, its age aside. */
  tokensRefused: number
}

export const heardNothing: Heard = { silentRequests: 0, silentRecords: 0, tokensRefused: 0 }

/** What an answer says of the pauses. */
export interface JudgedTrial {
  verdict: TrialVerdict
  /** The token was refused, and that says no more than that its time was up. */
  isTokenOutlived: boolean
}

/** A request that is through. */
export interface EndedAttempt {
  submission: Submission
  /** The poll's; null for a record. */
  job: PollJob | null
  /** It was sent first when pauses were over: a poll, or the first record after them. */
  trial: boolean
  attempted: AttemptResult
  /** By which a refusal is known again; null if the service itself judges, or if no answer came. */
  fingerprint: string | null
  /** How it ended; null if it was never made. */
  outcome: Outcome | null
  /** What its answer says of the pauses, if it is a poll that was sent as a trial; null if it says nothing. */
  judged: JudgedTrial | null
}

/** How it stood when the requests were made. */
export interface Circumstances {
  /** So many requests are on the wire at most. */
  maxInFlight: number
  /** So many slots seemed free. */
  permitsFree: number
  /** How long ago the request was begun; goes on. */
  ageMs: () => number
}

/** What is to be done with an answer. */
export interface Interpretation {
  /** To be written. */
  work: Work
  /** The service refused the token. */
  isTokenRefused: boolean
  /** To be remembered at once. */
  heard: Heard
  /** Once it is written, silence is listened for anew: what was heard of it has called for a pause, or the step has. */
  endsSilence: boolean
}

/** Requests in a row that may go unanswered before all sending pauses; of records no more than go at once. */
const silentMax = 5

/** What becomes of a submission's request: the step to write, and what it says about all others. Pure. */
export function interpretAttempt(attempt: EndedAttempt, heard: Heard, circumstances: Circumstances): Interpretation {
  const { submission, job, trial, attempted, fingerprint, judged } = attempt
  const { step, answer } = attempted
  // A poll as a trial may be refused for its transaction's sake: the question that comes next speaks for all.
  const said =
    trial && job !== null
      ? { ...trialResult(judged, heard), pause: null }
      : { clears: false, ...pauseFor(attempt, heard, circumstances) }
  return {
    work: {
      transition: { submission, job, change: step.change, cause: step.cause, request: madeRequest(attempt) },
      pauses: said.pause ? [said.pause] : [],
      passages: job === null ? passageOf(submission, attempted, fingerprint) : [],
      refusals: job === null ? refusalOf(submission, attempted, fingerprint) : [],
      trialSucceeded: said.clears,
      trialEnded: trial,
      remaining: remainingIn(answer, circumstances),
    },
    isTokenRefused: answer?.kind === 'response' && answer.status === 401,
    heard: said.heard,
    endsSilence: said.pause !== null,
  }
}

function madeRequest({ job, attempted: { answer }, outcome }: EndedAttempt): MadeRequest | null {
  if (answer === null || outcome === null) return null
  return { kind: job === null ? 'submit' : 'status', outcome, tookMs: answer.tookMs }
}

/** What becomes of a question about something that does not exist; null if it never left. Pure. */
export function interpretTrial(
  asked: { answer: Answer; judged: JudgedTrial } | null,
  heard: Heard,
  circumstances: Circumstances,
): Interpretation {
  const said = trialResult(asked?.judged ?? null, heard)
  return {
    work: {
      ...nothing,
      pauses: said.pause ? [said.pause] : [],
      trialSucceeded: said.clears,
      trialEnded: true,
      remaining: remainingIn(asked?.answer ?? null, circumstances),
    },
    isTokenRefused: asked?.judged.verdict.kind === 'token-refused',
    heard: said.heard,
    endsSilence: false,
  }
}

/** What is remembered once silence is listened for anew. */
export function withoutSilence({ tokensRefused }: Heard): Heard {
  return { ...heardNothing, tokensRefused }
}

function trialResult(
  judged: JudgedTrial | null,
  heard: Heard,
): { clears: boolean; pause: PauseCall | null; heard: Heard } {
  if (judged === null) return { clears: false, pause: null, heard }
  const { verdict, isTokenOutlived } = judged
  switch (verdict.kind) {
    case 'clear':
      return { clears: true, pause: null, heard: { ...heard, tokensRefused: 0 } }
    case 'pause':
      return { clears: false, pause: verdict.pause, heard: { ...heard, tokensRefused: 0 } }
    case 'token-refused': {
      const tokensRefused = heard.tokensRefused + (isTokenOutlived ? 0 : 1)
      return { clears: false, pause: tokensRefused > 1 ? verdict.pause : null, heard: { ...heard, tokensRefused } }
    }
    default:
      return verdict satisfies never
  }
}

function pauseFor(
  { job, trial, attempted: { step, answer, breach } }: EndedAttempt,
  heard: Heard,
  { maxInFlight }: Circumstances,
): { pause: PauseCall | null; heard: Heard } {
  if (step.pause !== null || answer === null) return { pause: step.pause, heard }
  // Who takes records and gives no ids would leave each in doubt, as one does who gives no answer.
  const silent = isSilence(answer) || breach === 'missing_id'
  const now = hearSilence(silent, job === null, heard)
  const isLong = now.silentRequests >= silentMax || now.silentRecords >= Math.min(silentMax, maxInFlight)
  // One record is proof enough if it goes first after a trial.
  if (!isLong && !(trial && silent)) return { pause: null, heard: now }
  const call = answer.kind === 'response' ? answeredInstead(step.cause, answer.status) : silence
  return { pause: trial && job === null && !call.answered ? { ...call, patient: true } : call, heard: now }
}

function hearSilence(silent: boolean, isRecord: boolean, heard: Heard): Heard {
  const count = (before: number) => (silent ? before + 1 : 0)
  return {
    ...heard,
    silentRequests: count(heard.silentRequests),
    silentRecords: isRecord ? count(heard.silentRecords) : heard.silentRecords,
  }
}

/** What the service says remains, if that is less than the slots that seemed free: another client may be spending. */
function remainingIn(answer: Answer | null, { permitsFree, ageMs }: Circumstances): Remaining | null {
  const remaining = answer?.kind === 'response' ? answer.rateRemaining : null
  return remaining !== null && remaining < permitsFree ? { requests: remaining, ageMs } : null
}

/** Without this pause a service that hangs would, request by request, leave every record in doubt. */
const silence: PauseCall = callAfter('request after request went unanswered')

/** Something answers, as a gateway does, and not the service: perhaps for these records alone. */
function answeredInstead(summary: string, status: number): PauseCall {
  const seen = 'request after request brought no answer of the service’s own'
  const { ownWords } = callAfter(`${seen}, the last: ${status}`)
  return { ...callAfter(`${seen}, the last: ${summary}`), ownWords, answered: true }
}

function callAfter(seen: string): PauseCall & { ownWords: string } {
  const detail = `${seen}; no record is sent until the service answers a question (outboxd check)`
  return { reason: 'unreachable', askedMs: null, detail, ownWords: detail }
}

/**
 * Whether a request left and brought no answer of the service's own: a timeout, a lost connection, a gateway's 502, a
 * page that is no JSON where a success was said. A 503 or E003 that stops nobody was taken for one record's own.
 */
export function isSilence(answer: Answer): boolean {
  if (answer.kind === 'no-answer') return answer.sent && !wasSuspended(answer)
  const { post } = statusRow(answer.status)
  if (answer.code === 'E003') return false
  return post === 'in-doubt' || (post === 'taken' && answer.json === undefined)
}

/** Statuses that speak of the way, the rate or the client, and never of the record. */
const isOfTheWay = (status: number): boolean => ofTheWay.has(statusRow(status).post)
const ofTheWay: ReadonlySet<PostMeaning> = new Set(['token-refused', 'forbidden', 'nothing-there', 'throttled'])

/** The passage of a record whose POST the service itself has answered: with an id, or a refusal in JSON. */
export function passageOf(
  { resource, met }: Submission,
  { answer, step }: AttemptResult,
  fingerprint: string | null,
): Passage[] {
  if (answer?.kind !== 'response' || step.pause !== null) return []
  const { status, json, code } = answer
  const accepted = isSuccess(status) && step.change.state !== 'uncertain'
  const refused = status >= 400 && status < 500 && json !== undefined && !isOfTheWay(status) && code !== 'E003'
  return accepted || refused ? [{ resource, met: met?.reason ?? null, judged: fingerprint === null }] : []
}

/** The refusal of a record that was rejected in words that others may be, too. */
export function refusalOf(
  { id: submissionId, resource }: Submission,
  { answer, step }: AttemptResult,
  fingerprint: string | null,
): Refusal[] {
  const { state } = step.change
  if (fingerprint === null || answer?.kind !== 'response' || state !== 'rejected' || isOfTheWay(answer.status))
    return []
  return [{ submissionId, resource, fingerprint, summary: step.cause }]
}
