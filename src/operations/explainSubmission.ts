import type { NewerVersion } from '../ledger/documents.ts'
import type { ActivePause, LoggedEvent, SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { State } from '../model/submission.ts'
import { pluralize, quoteForShell } from '../plainText.ts'
import { formatDuration, formatInstant, formatInstantAndDistance } from '../time.ts'
import { pauseEndText } from './renderStatus.ts'
import { commandToSendNewest, eventText, olderVersionClause } from './submissionFacts.ts'

export interface Explanation {
  why: string
  adviceText: string
  advice: readonly Advice[]
}

interface Advice {
  words: string
  ways: readonly Way[]
}

interface Way {
  command: string
  means: string
}

export function explainSubmission(detail: SubmissionDetail): Explanation {
  const { why, next } = explained[detail.state](detail)
  const advice = [...next, ...noDaemon(detail)]
  const lines = advice.flatMap(({ words, ways }) => [words, ...wayLines(ways)])
  return { why, adviceText: lines.join('\n'), advice }
}

function noDaemon({ state, reportDue, daemonLives }: SubmissionDetail): Advice[] {
  const needsDaemon = reportDue || state === 'queued' || state === 'sending' || state === 'accepted'
  return needsDaemon && !daemonLives ? [advise('no daemon is running: start one with `outboxd run`')] : []
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
  queued,
  sending: (detail) => (detail.probing ? probing(detail) : sending(detail)),
  accepted,
  completed: (detail) => ({
    why: detail.tracked ? 'the service finished it' : 'the service accepted it, and its mapping says track: false',
    next: [advise(reported(detail)), ...correctable(detail)],
  }),
  failed: (detail) => ({
    why: lastMessage(detail, 'the service refused it'),
    next: [...replayOrDiscard(detail), ...correctable(detail)],
  }),
  rejected: (detail) => ({ why: lastMessage(detail, 'its data is invalid'), next: replayOrDiscard(detail) }),
  uncertain: (detail) => ({ why: lastMessage(detail, 'it may or may not have arrived'), next: uncertainNext(detail) }),
  discarded: (detail) => ({
    why: lastEventText(detail) || 'an operator gave it up',
    next: [advise(reported(detail)), ...sentAgainAnyway(detail)],
  }),
}

function queued(detail: SubmissionDetail): Explained {
  const { blocker, dueMs, nowMs, pauses, free } = detail
  const explain = (why: string, next: string): Explained => ({ why, next: [advise(next)] })
  if (blocker !== null) {
    const front = `outbox:${blocker.outboxId}`
    const endsByItself = blocker.state === 'queued' || blocker.state === 'sending'
    return explain(
      `held behind ${front}, which is ${blocker.state} and ${blocker.isOwnVersion ? 'an earlier version of the document' : 'has the same key'}`,
      endsByItself
        ? `sent when ${front} is accepted or has ended`
        : `settle that record first: \`outboxd show ${quoteForShell(front)}\` says how`,
    )
  }
  const pause = longestPause(pauses)
  if (pause !== null) return explain(pauseMessage(pause, nowMs), 'sent after the pause')
  if (dueMs !== null && dueMs > nowMs)
    return explain(
      `it waits to be sent again. Cause: ${lastEventText(detail) || 'an attempt without success'}`,
      `to be sent from ${formatInstantAndDistance(dueMs, nowMs)} on, as soon as a request is free`,
    )
  return free > 0
    ? explain('it is the next record to be sent', 'sent within seconds')
    : explain('the budget is spent, so it waits for a free request', 'sent when a request is free and it is next')
}

function sending({ attempt, sentMs, nowMs }: SubmissionDetail): Explained {
  return {
    why: `attempt ${attempt} is on the wire${sentMs === null ? '' : ` since ${formatInstantAndDistance(sentMs, nowMs)}`}`,
    next: [
      advise(
        'the service’s answer decides. If the daemon that sends the record dies, another one takes over within a minute',
      ),
    ],
  }
}

function probing(detail: SubmissionDetail): Explained {
  const { transactionId, pollMs, nowMs } = detail
  const why = `the answer did not say whether it arrived, so the daemon asks the service for ${transactionId}`
  const next =
    pollMs === null
      ? 'the service is asked again soon'
      : `the service is asked again at ${formatInstantAndDistance(pollMs, nowMs)}`
  return { why: [why, ...uselessPolls(detail)].join('; '), next: pollNext(detail, next) }
}

function uselessPolls(detail: SubmissionDetail): string[] {
  const { fruitless } = detail
  if (fruitless === 0) return []
  const cause = lastEventText(detail)
  const useless = `the last ${pluralize(fruitless, 'poll')} brought no usable answer`
  return cause === '' ? [useless] : [useless, cause]
}

function accepted(detail: SubmissionDetail): Explained {
  const { transactionId, acceptedMs, nowMs, polls, openedTimes, unknownSinceMs } = detail
  const since = acceptedMs === null ? '' : ` ${formatDuration(nowMs - acceptedMs)} ago`
  const why = [
    `the service accepted it as ${transactionId}${since} and has not finished it (${pluralize(polls, 'poll')} so far)`,
    ...(unknownSinceMs === null
      ? []
      : [`since ${formatInstant(unknownSinceMs)} the service says that it does not know the transaction`]),
    ...(openedTimes > 0
      ? [`its polls paused sending ${openedTimes === 1 ? 'once' : 'twice'}: after the third time it is uncertain`]
      : []),
    ...uselessPolls(detail),
  ]
  return { why: why.join('; '), next: pollNext(detail, nextPoll(detail)) }
}

function nextPoll({ pauses, pollMs, nowMs }: SubmissionDetail): string {
  const pause = longestPause(pauses)
  if (pause !== null) return `${pauseMessage(pause, nowMs)}. The service is asked after the pause`
  if (pollMs === null || pollMs <= nowMs) return 'the service is asked as soon as a request is free'
  return `the service is asked again at ${formatInstantAndDistance(pollMs, nowMs)}`
}

function pollNext(detail: SubmissionDetail, next: string): Advice[] {
  const { id, probing, polledRarely, answered, idByPerson } = detail
  if (!polledRarely) return [advise(next)]
  const words = `${next}, now rarely, because it takes unusually long. Ask the operator of the service what became of it, then`
  if (probing) return [advise(words, arrived(id, itDid), ...notArrived(detail))]
  const correct = [arrived(id, 'it has another id'), ...notArrived(detail)]
  return [advise(words, ...(idByPerson || !answered ? correct : []), discard(id, 'stop asking'))]
}

function uncertainNext(detail: SubmissionDetail): Advice[] {
  const { id, newer } = detail
  return [
    advise(
      `needs attention: ask the operator of the service whether it arrived${timesSentSuffix(detail)}, then`,
      arrived(id, itDid),
      ...notArrived(detail),
      discard(id, newer === null ? noMatter : 'if it did not arrive, or no longer matters'),
    ),
    ...holdsBack(detail),
  ]
}

/** After E002 only an earlier attempt may have arrived. */
function timesSentSuffix({ events, sentMs, code }: SubmissionDetail): string {
  const isSent = ({ from, to }: LoggedEvent, i: number) =>
    from === 'queued' && to === 'sending' && events[i + 1]?.cause !== 'never_sent'
  const all = events.filter(isSent).map(({ atMs }) => atMs)
  const doubtful = code === 'E002' && all.length > 1 ? all.slice(0, -1) : all
  const [first = sentMs] = doubtful
  if (first === null) return ''
  if (doubtful.length < 2) return ` at ${formatInstant(first)}`
  return ` between ${formatInstant(first)} and ${formatInstant(doubtful.at(-1) ?? first)} (${doubtful.length} attempts)`
}

function replayOrDiscard(detail: SubmissionDetail): Advice[] {
  const { id, state, code, attempt, body, mayHaveArrived, newer } = detail
  if (detail.changedAfterSent) return [changedAfterSentAdvice(detail), ...holdsBack(detail)]
  const orService = attempt > 0 ? ', or have the service correct its data' : ''
  const failed =
    code === 'E002' ? 'ask the operator of the service why each new id counts as taken, then' : 'remove the cause, then'
  const cause =
    state === 'rejected' ? `fix the mapping file, or fix the outbox row and add --refresh${orService}, then` : failed
  if (newer !== null && !mayHaveArrived)
    return [
      advise(`needs attention: it ${olderVersionClause(newer)}`, ...sendNewest(newer), discard(id, noMatter)),
      ...holdsBack(detail),
    ]
  const advice = mayHaveArrived
    ? advise(
        'needs attention: it may have arrived, so ask the operator of the service first, then',
        ...(body === null ? [] : [arrived(id, itDid)]),
        ...(newer === null ? [replay(id, itDidNot)] : sendNewest(newer)),
        discard(id, body === null ? 'if it arrived: outboxd cannot track it, because it cannot be mapped' : noMatter),
      )
    : advise(
        `needs attention: ${cause}`,
        replay(id, 'map it and send it again; --refresh reads the row again'),
        discard(id, noMatter),
      )
  return [advice, ...holdsBack(detail)]
}

/** Without a body nothing can be sent: the document was deleted, or does not meet the condition any more. */
const changedAfterSentAdvice = ({ id, body }: SubmissionDetail) =>
  advise(
    'needs attention: the service has, or may have, the document as it was sent before. Correct it there by hand, or agree on what to do, then',
    discard(id, 'if the change is settled, or does not matter'),
    ...(body === null ? [] : [replay(id, 'if this version is to be sent, too: the service then has both')]),
  )

const itDid = 'if it arrived: outboxd tracks it to its end'
const itDidNot = 'if it did not arrive: send it again'
const noMatter = 'if it no longer matters'

/** Not for what change capture discarded, because nothing was given up there. */
function sentAgainAnyway({ id, erasedMs, newer, events }: SubmissionDetail): Advice[] {
  if (erasedMs !== null || newer !== null || events.at(-1)?.actor !== 'operator') return []
  return [
    advise('if it must be sent after all', { command: `outboxd replay ${id} --discarded`, means: 'send it again' }),
  ]
}

function correctable({ id, idByPerson, transactionId }: SubmissionDetail): Advice[] {
  if (!idByPerson) return []
  return [
    advise(
      `an operator gave the transaction ${transactionId}. If that is wrong, correct it`,
      { command: `outboxd resolve ${id} --arrived OTHER_ID`, means: 'if you know the right id' },
      { command: `outboxd resolve ${id} --take-back`, means: 'if you do not' },
    ),
  ]
}

const arrived = (id: string, means: string): Way => ({
  command: `outboxd resolve ${id} --arrived TRANSACTION_ID`,
  means,
})

const notArrived = ({ id, newer }: SubmissionDetail): Way[] =>
  newer === null ? [{ command: `outboxd resolve ${id} --not-arrived`, means: itDidNot }] : sendNewest(newer)

/** Empty if the newest version needs no command, or cannot be sent. Then only `discard` is left. */
function sendNewest(newer: NewerVersion): Way[] {
  const command = commandToSendNewest(newer)
  return command === null
    ? []
    : [{ command, means: 'if it did not arrive: discard this one, then send the newest version' }]
}

const replay = (id: string, means: string): Way => ({ command: `outboxd replay ${id}`, means })
const discard = (id: string, means: string): Way => ({ command: `outboxd discard ${id} --reason TEXT`, means })

const holdsBack = ({ blocks }: SubmissionDetail): Advice[] =>
  blocks ? [advise('until then, later records of its key wait')] : []

function lastEventText({ events }: SubmissionDetail): string {
  const last = events.at(-1)
  return last === undefined ? '' : eventText(last)
}

const lastMessage = ({ error, code }: SubmissionDetail, otherwise: string) =>
  error ?? (code ? `${otherwise}: ${code}` : otherwise)

const reported = ({ reportDue }: SubmissionDetail) =>
  reportDue ? 'the daemon writes this state back to the outbox row' : 'nothing: it has ended'

function longestPause(pauses: readonly ActivePause[]): ActivePause | null {
  const endMs = ({ untilMs }: ActivePause) => untilMs ?? Number.POSITIVE_INFINITY
  return pauses.toSorted((a, b) => endMs(b) - endMs(a))[0] ?? null
}

const pauseMessage = (pause: ActivePause, nowMs: number) =>
  `paused (${pause.reason}) ${pauseEndText(pause, nowMs)}: ${pause.detail.replace(/\s+/g, ' ')}`
