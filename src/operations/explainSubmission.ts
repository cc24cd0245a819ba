import type { ActivePause, SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { State } from '../model.ts'
import { showDuration, showMoment, showTime } from '../time.ts'

export interface Explanation {
  why: string
  /** All of `advice`, a line a sentence and a line a command. */
  next: string
  advice: readonly Advice[]
}

export interface Advice {
  words: string
  ways: readonly Way[]
}

export interface Way {
  kind: 'arrived' | 'not-arrived' | 'replay' | 'discard' | 'correct'
  command: string
  means: string
}

export function explainSubmission(detail: SubmissionDetail): Explanation {
  const { why, next } = explained[detail.state](detail)
  const advice = [...next, ...noDaemon(detail)]
  const lines = advice.flatMap(({ words, ways }) => [words, ...wayLines(ways)])
  return { why, next: lines.join('\n'), advice }
}

function noDaemon({ state, reportDue, daemonLives }: SubmissionDetail): Advice[] {
  const needsDaemon = reportDue || state === 'queued' || state === 'sending' || state === 'accepted'
  return needsDaemon && !daemonLives
    ? [advise('no daemon runs now, so nothing of this happens until you start one: outboxd run')]
    : []
}

function wayLines(ways: readonly Way[]): string[] {
  const width = Math.max(...ways.map(({ command }) => command.length))
  return ways.map(({ command, means }) => `  ${command.padEnd(width)}   ${means}`.trimEnd())
}

const advise = (words: string, ...ways: Way[]): Advice => ({ words, ways })

interface Explained {
  why: string
  next: Advice[]
}

const explained: Record<State, (detail: SubmissionDetail) => Explained> = {
  queued: (detail) => {
    const [why, next] = queued(detail)
    return { why, next: [advise(next)] }
  },
  sending: (detail) => (detail.probing ? probing(detail) : sending(detail)),
  accepted,
  completed: (detail) => ({
    why: detail.tracked ? 'the service finished it' : 'the service accepted it, and its mapping says track: false',
    next: [advise(reported(detail)), ...correctable(detail)],
  }),
  failed: (detail) => ({
    why: lastMessage(detail, 'the service said no'),
    next: [...replayOrDiscard(detail), ...correctable(detail)],
  }),
  rejected: (detail) => ({ why: lastMessage(detail, 'its data is invalid'), next: replayOrDiscard(detail) }),
  uncertain: (detail) => ({
    why: lastMessage(detail, 'it may or may not have arrived'),
    next: uncertainNext(detail),
  }),
  discarded: (detail) => ({
    why: detail.events.at(-1)?.cause ?? 'an operator gave it up',
    next: [advise(reported(detail))],
  }),
}

function queued(detail: SubmissionDetail): [why: string, next: string] {
  const { held, blocker, dueMs, nowMs, pauses, permitsFree } = detail
  if (held && blocker) {
    const front = `outbox:${blocker.outboxId}`
    const endsByItself = blocker.state === 'queued' || blocker.state === 'sending'
    return [
      `held behind ${front}, which is ${blocker.state} and has the same key`,
      endsByItself
        ? `sent once ${front} has been accepted or has ended`
        : `resolve that first: outboxd show ${front} says how`,
    ]
  }
  const pause = longestPause(pauses)
  if (pause !== null) return [pauseMessage(pause), pauseNext(pause, nowMs, 'sent')]
  if (dueMs !== null && dueMs > nowMs) {
    const cause = detail.events.at(-1)?.cause
    return [
      cause ? `sent again after: ${cause}` : 'it waits before it is sent again',
      `sent at ${showMoment(dueMs, nowMs)}, as soon as a slot is free`,
    ]
  }
  return permitsFree > 0
    ? ['its turn has come', 'sent within seconds']
    : ['it waits for a slot: the budget is spent', 'sent when a slot is free and it is its turn']
}

function sending({ attempt, sentMs, nowMs }: SubmissionDetail): Explained {
  return {
    why: `attempt ${attempt} is on the wire${sentMs === null ? '' : ` since ${showMoment(sentMs, nowMs)}`}`,
    next: [advise('the answer decides; if its instance dies, another settles it within a minute')],
  }
}

function probing(detail: SubmissionDetail): Explained {
  const { id, transactionId, pollMs, nowMs } = detail
  const why =
    transactionId === id
      ? 'the answer did not say whether it arrived, so we ask the service whether it knows the id that we sent'
      : `the service performed the request and named ${transactionId} in its Location, so we ask for that`
  const next = pollMs === null ? 'asked soon' : `asked at ${showMoment(pollMs, nowMs)}`
  return { why: [why, ...uselessPolls(detail)].join('; '), next: pollNext(detail, next) }
}

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
  return { why: [why, ...doubts].join('; '), next: pollNext(detail, next) }
}

/** What is next for a polled record; after too long, also what a person can do. */
function pollNext({ id, probing, polledRarely, answered, idByPerson }: SubmissionDetail, next: string): Advice[] {
  if (!polledRarely) return [advise(next)]
  const words = `${next}, rarely, since it is long past its time; ask the operator of the service what became of it, then perhaps`
  if (probing) return [advise(words, arrived(id, itDid), notArrived(id, itDidNot))]
  const correct = [arrived(id, 'it has another id'), notArrived(id, 'it is not there: we send it again')]
  return [advise(words, ...(idByPerson || !answered ? correct : []), discard(id, 'we ask no more'))]
}

function uncertainNext(detail: SubmissionDetail): Advice[] {
  const { id, sentMs } = detail
  const when = sentMs === null ? '' : ` at ${showTime(sentMs)}`
  return [
    advise(
      `waits for you: ask the operator of the service whether it arrived${when}, then`,
      arrived(id, itDid),
      notArrived(id, itDidNot),
      discard(id, noMatter),
    ),
    ...holdsBack(detail),
  ]
}

function replayOrDiscard(detail: SubmissionDetail): Advice[] {
  const { id, state, body, mayHaveArrived } = detail
  const cause =
    state === 'rejected' ? 'mend the mapping file, or have the outbox row corrected, then' : 'when the cause is gone'
  const advice = mayHaveArrived
    ? advise(
        'waits for you: it may have arrived nevertheless, so ask the operator of the service first, then',
        ...(body === null ? [] : [arrived(id, itDid)]),
        replay(id, itDidNot),
        discard(id, body === null ? 'it did: it does not map, so we cannot follow it' : noMatter),
      )
    : advise(
        `waits for you: ${cause}`,
        replay(id, 'maps and sends it again; --refresh reads the row anew'),
        discard(id, noMatter),
      )
  return [advice, ...holdsBack(detail)]
}

const itDid = 'it did: we follow it to its end'
const itDidNot = 'it did not: we send it again'
const noMatter = 'it no longer matters'

function correctable({ id, idByPerson, transactionId }: SubmissionDetail): Advice[] {
  if (!idByPerson) return []
  const command = `outboxd resolve ${id} --arrived OTHER_ID, or --take-back where the other is not known`
  return [
    advise(`a person said that ${transactionId} is its transaction; if it is not`, {
      kind: 'correct',
      command,
      means: '',
    }),
  ]
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
  blocks ? [advise('until then it holds back the later records of its key')] : []

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
