import type { ActivePause, SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import { showDuration, showMoment, showTime } from '../time.ts'

/** Why a submission is where it is, and what happens next, in words. */
export interface Explanation {
  why: string
  /** All of `advice`, a line a sentence and a line a command. */
  next: string
  advice: readonly Advice[]
}

/** A sentence about what is next, and what a person may do then. */
export interface Advice {
  words: string
  ways: readonly Way[]
}

/** Something that a person may do, what it means, and the command that does it. */
export interface Way {
  kind: 'arrived' | 'not-arrived' | 'replay' | 'discard' | 'correct'
  command: string
  /** To be read after the command; empty where it says enough. */
  means: string
}

/** Explains a submission's state. Pure. */
export function explainSubmission(detail: SubmissionDetail): Explanation {
  const { why, next } = explainState(detail)
  const advice = [...(typeof next === 'string' ? [{ words: next, ways: [] }] : next), ...noDaemon(detail)]
  const lines = advice.flatMap(({ words, ways }) => [words, ...wayLines(ways)])
  return { why, next: lines.join('\n'), advice }
}

/** What is said of sending, polls and the outbox row comes true only while a daemon runs. */
function noDaemon({ state, reportDue, daemonLives }: SubmissionDetail): Advice[] {
  const needsDaemon = reportDue || state === 'queued' || state === 'sending' || state === 'accepted'
  return needsDaemon && !daemonLives
    ? [{ words: 'no daemon runs now, so nothing of this happens until you start one: outboxd run', ways: [] }]
    : []
}

function wayLines(ways: readonly Way[]): string[] {
  const width = Math.max(...ways.map(({ command }) => command.length))
  return ways.map(({ command, means }) => `  ${command.padEnd(width)}   ${means}`.trimEnd())
}

interface Explained {
  why: string
  next: string | Advice[]
}

function explainState(detail: SubmissionDetail): Explained {
  switch (detail.state) {
    case 'queued':
      return queued(detail)
    case 'sending':
      return detail.probing ? probing(detail) : sending(detail)
    case 'accepted':
      return accepted(detail)
    case 'completed':
      return {
        why: detail.tracked ? 'the service finished it' : 'the service accepted it, and its mapping says track: false',
        next: [{ words: reported(detail), ways: [] }, ...correctable(detail)],
      }
    case 'failed':
      return {
        why: lastMessage(detail, 'the service said no'),
        next: [...replayOrDiscard(detail), ...correctable(detail)],
      }
    case 'rejected':
      return { why: lastMessage(detail, 'its data is invalid'), next: replayOrDiscard(detail) }
    case 'uncertain':
      return { why: lastMessage(detail, 'it may or may not have arrived'), next: uncertainNext(detail) }
    case 'discarded':
      return { why: detail.events.at(-1)?.cause ?? 'an operator gave it up', next: reported(detail) }
    default:
      return detail.state satisfies never
  }
}

function queued(detail: SubmissionDetail): Explained {
  const { held, blocker, dueMs, nowMs, pauses, permitsFree } = detail
  if (held && blocker) {
    const front = `outbox:${blocker.outboxId}`
    const why = `held behind ${front}, which is ${blocker.state} and has the same key`
    const settled = blocker.state === 'queued' || blocker.state === 'sending'
    return {
      why,
      next: settled
        ? `sent once ${front} has been accepted or has ended`
        : `resolve that first: outboxd show ${front} says how`,
    }
  }
  const pause = longestPause(pauses)
  if (pause !== null) return { why: pauseMessage(pause), next: pauseNext(pause, nowMs, 'sent') }
  if (dueMs !== null && dueMs > nowMs) {
    const cause = detail.events.at(-1)?.cause
    return {
      why: cause ? `sent again after: ${cause}` : 'it waits before it is sent again',
      next: `sent at ${showMoment(dueMs, nowMs)}, as soon as a slot is free`,
    }
  }
  return permitsFree > 0
    ? {
        why: 'its turn has come',
        next: 'sent within seconds',
      }
    : { why: 'it waits for a slot: the budget is spent', next: 'sent when a slot is free and it is its turn' }
}

function sending({ attempt, sentMs, nowMs }: SubmissionDetail): Explained {
  return {
    why: `attempt ${attempt} is on the wire${sentMs === null ? '' : ` since ${showMoment(sentMs, nowMs)}`}`,
    next: 'the answer decides; if its instance dies, another settles it within a minute',
  }
}

function probing(detail: SubmissionDetail): Explained {
  const { id, transactionId, pollMs, nowMs } = detail
  const why =
    transactionId === id
      ? 'the answer did not say whether it arrived, so we ask the service whether it knows the id that we sent'
      : `the service performed the request and named ${transactionId} in its Location, so we ask for that`
  const next = pollMs === null ? 'asked soon' : `asked at ${showMoment(pollMs, nowMs)}`
  return {
    why: [why, ...uselessPolls(detail)].join('; '),
    next: detail.polledRarely ? stuckNext(detail, next) : next,
  }
}

/** How many polls were useless, and the last of their causes. */
function uselessPolls({ fruitless, events }: SubmissionDetail): string[] {
  if (fruitless === 0) return []
  const cause = events.at(-1)?.cause
  return [
    `the last ${fruitless === 1 ? 'poll' : `${fruitless} polls`} brought no usable answer`,
    ...(cause === undefined ? [] : [cause]),
  ]
}

function accepted(detail: SubmissionDetail): Explained {
  const { transactionId, acceptedMs, nowMs, polls, refusedPolls, unknownSinceMs, pollMs, pauses } = detail
  const since = acceptedMs === null ? '' : ` ${showDuration(nowMs - acceptedMs)} ago`
  const doubts = [
    unknownSinceMs === null ? null : `since ${showTime(unknownSinceMs)} the service says that it does not know it`,
    refusedPolls > 1
      ? `${refusedPolls} polls were refused while others got through, so we ask for it alone, ever more rarely`
      : null,
    ...uselessPolls(detail),
  ].filter((doubt) => doubt !== null)
  const why = `the service accepted it as ${transactionId}${since} and has not finished it (${polls} polls so far)`
  const pause = longestPause(pauses)
  const next =
    pause !== null
      ? `${pauseMessage(pause)}: ${pauseNext(pause, nowMs, 'asked')}`
      : pollMs === null || pollMs <= nowMs
        ? 'asked as soon as a slot is free'
        : `asked again at ${showMoment(pollMs, nowMs)}`
  return { why: [why, ...doubts].join('; '), next: detail.polledRarely ? stuckNext(detail, next) : next }
}

/** What a person can do about a transaction that does not come to an end. */
function stuckNext({ id, probing, answered, idByPerson }: SubmissionDetail, next: string): Advice[] {
  const correct = [arrived(id, 'it has another id'), notArrived(id, 'it is not there: we send it again')]
  const words = `${next}, rarely, since it is long past its time; ask the operator of the service what became of it, then perhaps`
  if (probing)
    return [
      { words, ways: [arrived(id, 'it did: we follow it to its end'), notArrived(id, 'it did not: we send it again')] },
    ]
  return [{ words, ways: [...(idByPerson || !answered ? correct : []), discard(id, 'we ask no more')] }]
}

function uncertainNext(detail: SubmissionDetail): Advice[] {
  const { id, sentMs } = detail
  const when = sentMs === null ? '' : ` at ${showTime(sentMs)}`
  return [
    {
      words: `waits for you: ask the operator of the service whether it arrived${when}, then`,
      ways: [
        arrived(id, 'it did: we follow it to its end'),
        notArrived(id, 'it did not: we send it again'),
        discard(id, 'it no longer matters'),
      ],
    },
    ...holdsBack(detail),
  ]
}

function replayOrDiscard(detail: SubmissionDetail): Advice[] {
  const { id, state } = detail
  if (detail.mayHaveArrived) return mayHaveArrivedNext(detail)
  const first =
    state === 'rejected' ? 'mend the mapping file, or have the outbox row corrected, then' : 'when the cause is gone'
  return [
    {
      words: `waits for you: ${first}`,
      ways: [replay(id, 'maps and sends it again; --refresh reads the row anew'), discard(id, 'it no longer matters')],
    },
    ...holdsBack(detail),
  ]
}

function mayHaveArrivedNext(detail: SubmissionDetail): Advice[] {
  const { id, body } = detail
  const followed = body === null ? [] : [arrived(id, 'it did: we follow it to its end')]
  return [
    {
      words: 'waits for you: it may have arrived nevertheless, so ask the operator of the service first, then',
      ways: [
        ...followed,
        replay(id, 'it did not: we send it again'),
        discard(id, body === null ? 'it did: it does not map, so we cannot follow it' : 'it no longer matters'),
      ],
    },
    ...holdsBack(detail),
  ]
}

/** What the service said of an id that a person gave may be another's. */
function correctable({ id, idByPerson, transactionId }: SubmissionDetail): Advice[] {
  if (!idByPerson) return []
  const command = `outboxd resolve ${id} --arrived OTHER_ID, or --take-back where the other is not known`
  const words = `a person said that ${transactionId} is its transaction; if it is not`
  return [{ words, ways: [{ kind: 'correct', command, means: '' }] }]
}

const arrived = (id: string, means: string): Way => ({
  kind: 'arrived',
  command: `outboxd resolve ${id} --arrived TRANSACTION_ID`,
  means,
})
const notArrived = (id: string, means: string): Way => ({
  kind: 'not-arrived',
  command: `outboxd resolve ${id} --not-arrived`,
  means,
})
const replay = (id: string, means: string): Way => ({ kind: 'replay', command: `outboxd replay ${id}`, means })
const discard = (id: string, means: string): Way => ({
  kind: 'discard',
  command: `outboxd discard ${id} --reason TEXT`,
  means,
})

const holdsBack = ({ blocks }: SubmissionDetail): Advice[] =>
  blocks ? [{ words: 'until then it holds back the later records of its key', ways: [] }] : []

const lastMessage = ({ error, code }: SubmissionDetail, otherwise: string) =>
  error ?? (code ? `${otherwise}: ${code}` : otherwise)

const reported = ({ reportDue }: SubmissionDetail) =>
  reportDue ? 'only the outbox row: the daemon has yet to write this state into it' : 'nothing: it has come to its end'

/** The pause that ends last; one without an end counts as the last. */
export function longestPause(pauses: readonly ActivePause[]): ActivePause | null {
  const endMs = ({ untilMs }: ActivePause) => untilMs ?? Number.POSITIVE_INFINITY
  return pauses.toSorted((a, b) => endMs(b) - endMs(a))[0] ?? null
}

const pauseMessage = ({ reason, detail }: ActivePause) => `paused (${reason}): ${detail.replace(/\s+/g, ' ')}`

function pauseNext({ reason, untilMs }: ActivePause, nowMs: number, what: string): string {
  if (reason === 'history') return `${what} when outboxd status says nothing of the ledger’s history any more`
  if (untilMs === null) return `${what} after outboxd resume`
  if (reason === 'operator') return `${what} after ${showMoment(untilMs, nowMs)}, or after outboxd resume`
  if (untilMs <= nowMs) return `${what} once a request has shown that the service answers again`
  return `${what} after ${showMoment(untilMs, nowMs)}, when a first request has shown that the service answers again`
}
