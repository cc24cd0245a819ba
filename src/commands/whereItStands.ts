import type { Dossier, StandingPause } from '../store/operator/readDossier.ts'
import { showDuration, showMoment, showTime } from './time.ts'

/** Why a submission is where it is, and what happens next, in words. */
export interface Standing {
  why: string
  next: string
}

/** Explains a submission's state. Pure. */
export function whereItStands(dossier: Dossier): Standing {
  switch (dossier.state) {
    case 'queued':
      return queued(dossier)
    case 'sending':
      return dossier.probing ? probing(dossier) : sending(dossier)
    case 'accepted':
      return accepted(dossier)
    case 'completed':
      return {
        why: dossier.tracked ? 'the service finished it' : 'the service accepted it, and its mapping says track: false',
        next: `${reported(dossier)}${correctable(dossier)}`,
      }
    case 'failed':
      return {
        why: lastWords(dossier, 'the service said no'),
        next: `${replayOrDiscard(dossier)}${holdsBack(dossier)}${correctable(dossier)}`,
      }
    case 'rejected':
      return { why: lastWords(dossier, 'its data is invalid'), next: replayOrDiscard(dossier) }
    case 'uncertain':
      return { why: lastWords(dossier, 'it may or may not have arrived'), next: uncertainNext(dossier) }
    case 'discarded':
      return { why: dossier.events.at(-1)?.cause ?? 'an operator gave it up', next: reported(dossier) }
    default:
      return dossier.state satisfies never
  }
}

function queued(dossier: Dossier): Standing {
  const { held, blocker, dueMs, nowMs, pauses, permitsFree } = dossier
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
  if (pause !== null) return { why: pauseWords(pause), next: pauseNext(pause, nowMs, 'sent') }
  if (dueMs !== null && dueMs > nowMs) {
    const cause = dossier.events.at(-1)?.cause
    return {
      why: cause ? `sent again after: ${cause}` : 'it waits before it is sent again',
      next: `sent at ${showMoment(dueMs, nowMs)}, as soon as a slot is free`,
    }
  }
  return permitsFree > 0
    ? {
        why: 'its turn has come',
        next: 'sent within seconds while a daemon runs: outboxd status shows whether one does',
      }
    : { why: 'it waits for a slot: the budget is spent', next: 'sent when a slot is free and it is its turn' }
}

function sending({ attempt, sentMs, nowMs }: Dossier): Standing {
  return {
    why: `attempt ${attempt} is on the wire${sentMs === null ? '' : ` since ${showMoment(sentMs, nowMs)}`}`,
    next: 'the answer decides; if its instance dies, another settles it within a minute',
  }
}

function probing({ pollMs, nowMs }: Dossier): Standing {
  return {
    why: 'no answer came, so the service is asked whether it knows the id that was sent',
    next: pollMs === null ? 'asked soon' : `asked at ${showMoment(pollMs, nowMs)}`,
  }
}

function accepted(dossier: Dossier): Standing {
  const { transactionId, acceptedMs, nowMs, polls, fruitless, refusedPolls, unknownSinceMs, pollMs, pauses, events } =
    dossier
  const since = acceptedMs === null ? '' : ` ${showDuration(nowMs - acceptedMs)} ago`
  const doubts = [
    unknownSinceMs === null ? null : `it says since ${showTime(unknownSinceMs)} that it does not know it`,
    fruitless > 0 ? `the last ${fruitless === 1 ? 'poll' : `${fruitless} polls`} brought no usable answer` : null,
    refusedPolls > 1
      ? `${refusedPolls} polls were refused while others got through, so it is asked for alone, ever more rarely`
      : null,
    fruitless > 0 ? events.at(-1)?.cause : null,
  ].filter((doubt) => doubt != null)
  const why = `the service accepted it as ${transactionId}${since} and has not finished it (${polls} polls so far)`
  const pause = longestPause(pauses)
  const next =
    pause !== null
      ? `${pauseWords(pause)}: ${pauseNext(pause, nowMs, 'asked')}`
      : pollMs === null || pollMs <= nowMs
        ? 'asked as soon as a slot is free'
        : `asked again at ${showMoment(pollMs, nowMs)}`
  return { why: [why, ...doubts].join('; '), next: dossier.polledRarely ? `${next}${stuckNext(dossier)}` : next }
}

/** What a person can do about a transaction that does not come to an end. */
function stuckNext({ id, answered, idByPerson }: Dossier): string {
  const correct = idByPerson || !answered
  return [
    ', rarely, as it is long past its time; ask the operator of the service what became of it, then perhaps',
    ...(correct
      ? [
          `  outboxd resolve ${id} --arrived TRANSACTION_ID   it has another id`,
          `  outboxd resolve ${id} --not-arrived              it is not there: it is sent again`,
        ]
      : []),
    `  outboxd discard ${id} --reason TEXT              nobody will ask any more`,
  ].join('\n')
}

function uncertainNext(dossier: Dossier): string {
  const { id, sentMs } = dossier
  const when = sentMs === null ? '' : ` at ${showTime(sentMs)}`
  return [
    `waits for you: ask the operator of the service whether it arrived${when}, then`,
    `  outboxd resolve ${id} --arrived TRANSACTION_ID   it did: it is followed to its end`,
    `  outboxd resolve ${id} --not-arrived              it did not: it is sent again`,
    `  outboxd discard ${id} --reason TEXT              it no longer matters${holdsBack(dossier)}`,
  ].join('\n')
}

function replayOrDiscard(dossier: Dossier): string {
  const { id, state } = dossier
  if (dossier.mayHaveArrived) return mayHaveArrivedNext(dossier)
  const first =
    state === 'rejected' ? 'mend the mapping file, or have the outbox row corrected, then' : 'when the cause is gone'
  return [
    `waits for you: ${first}`,
    `  outboxd replay ${id}                  maps and sends it again; --refresh reads the row anew`,
    `  outboxd discard ${id} --reason TEXT   it no longer matters${holdsBack(dossier)}`,
  ].join('\n')
}

function mayHaveArrivedNext(dossier: Dossier): string {
  const { id } = dossier
  return [
    `waits for you: it may have arrived all the same, so ask the operator of the service first, then`,
    `  outboxd resolve ${id} --arrived TRANSACTION_ID   it did: it is followed to its end`,
    `  outboxd replay ${id}                             it did not: it is sent again`,
    `  outboxd discard ${id} --reason TEXT              it no longer matters${holdsBack(dossier)}`,
  ].join('\n')
}

/** What the service said of an id that a person gave may be another's. */
const correctable = ({ id, idByPerson, transactionId }: Dossier) =>
  idByPerson
    ? `\nthat ${transactionId} is its transaction, a person said; if it is not\n  outboxd resolve ${id} --arrived OTHER_ID, or --take-back where the other is not known`
    : ''

const holdsBack = ({ blocks }: Dossier) => (blocks ? '\nuntil then it holds back the later records of its key' : '')

const lastWords = ({ error, code }: Dossier, otherwise: string) => error ?? (code ? `${otherwise}: ${code}` : otherwise)

const reported = ({ reportDue }: Dossier) =>
  reportDue ? 'nothing but to write it into the outbox row, which is due' : 'nothing: its journey has ended'

/** The pause that ends last; one without an end counts as the last. */
export function longestPause(pauses: readonly StandingPause[]): StandingPause | null {
  const endMs = ({ untilMs }: StandingPause) => untilMs ?? Number.POSITIVE_INFINITY
  return pauses.toSorted((a, b) => endMs(b) - endMs(a))[0] ?? null
}

const pauseWords = ({ reason, detail }: StandingPause) => `paused (${reason}): ${detail.replace(/\s+/g, ' ')}`

function pauseNext({ reason, untilMs }: StandingPause, nowMs: number, what: string): string {
  if (untilMs === null) return `${what} after outboxd resume`
  if (reason === 'operator') return `${what} after ${showMoment(untilMs, nowMs)}, or after outboxd resume`
  if (untilMs <= nowMs) return `${what} once a request has shown that the service answers again`
  return `${what} after ${showMoment(untilMs, nowMs)}, when a first request has shown that the service answers again`
}
