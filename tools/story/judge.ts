import type { Fault } from './faults.ts'
import type { Notification, ToldAlert } from './notifications.ts'

/** An alert of a site, with the time of its first notification. */
export interface Told {
  /** The alert's name, and after a slash its kind or reason. */
  name: string
  afterMs: number
  receiver: string
  /** The alert's text. */
  text: string
}

/** Which alerts a fault caused. */
export interface Verdict {
  /** Time of the first notification about the fault; null if there was none. */
  expected: Told | null
  /** Other alerts, in the order of their notifications. */
  others: Told[]
  /** Number of calls. */
  calls: number
  /** What is wrong with the alerts; empty if they were right. */
  faulty: string[]
}

/** The label that distinguishes alerts of one name. */
const distinguishing = ['kind', 'reason', 'database', 'certificate']

export function nameOf({ labels }: Pick<ToldAlert, 'labels'>): string {
  return [labels.alertname, ...distinguishing.flatMap((label) => labels[label] ?? [])].join('/')
}

/** True if an alert is among those meant. A name without a slash means all alerts of that name. */
export const isMeant = (meant: readonly string[], name: string): boolean =>
  meant.some((each) => name === each || name.startsWith(`${each}/`))

/**
 * Judges the notifications during a fault. Pure.
 *
 * @param notifications only those of the fault's job
 * @param begunMs when the fault began, on the notifications' clock
 * @param status the first line of `outboxd status` at the time of the notification
 * @param section gives the runbook's section that the alert points to, null if there is none
 */
export function judge(
  fault: Fault,
  notifications: readonly Notification[],
  begunMs: number,
  status: string,
  section: (url: string) => string | null,
): Verdict {
  const told = firstTold(notifications, begunMs)
  const expected = told.find(({ name }) => isMeant(fault.alerts, name)) ?? null
  const others = told.filter((each) => each !== expected)
  const stray = others.filter(({ name }) => !isMeant([...fault.alerts, ...(fault.also ?? [])], name))
  const calls = countCalls(notifications)
  const url = firingOf(notifications).find((alert) => nameOf(alert) === expected?.name)?.annotations.runbook_url
  const faulty = [
    expected === null && `${fault.alerts.join(' or ')} was not told`,
    ...told.filter(({ afterMs }) => afterMs < 0).map(({ name }) => `${name} was told before anything was wrong`),
    ...stray
      .filter(({ afterMs }) => afterMs >= 0)
      .map(({ name, receiver }) => `${name} was told as well (${receiver})`),
    expected !== null && !fault.cause.text.test(expected.text) && `its text does not name the cause: ${expected.text}`,
    expected !== null && !fault.cause.runbook.test(section(url ?? '') ?? '') && `${url} does not name the cause`,
    calls > 1 && `somebody was called ${calls} times`,
    !fault.cause.status.test(status) && `status does not say it first: ${status}`,
  ].filter((words) => words !== false)
  return { expected, others, calls, faulty }
}

/** Returns the time of each alert's first notification. */
function firstTold(notifications: readonly Notification[], begunMs: number): Told[] {
  const firsts = new Map<string, Told>()
  for (const { atMs, receiver, alerts } of notifications)
    for (const alert of alerts) {
      const name = nameOf(alert)
      if (alert.status === 'resolved' || firsts.has(name)) continue
      const { summary = '', description = '' } = alert.annotations
      firsts.set(name, { name, afterMs: atMs - begunMs, receiver, text: `${summary} ${description}` })
    }
  return [...firsts.values()]
}

const firingOf = (notifications: readonly Notification[]) =>
  notifications.flatMap(({ alerts }) => alerts.filter(({ status }) => status === 'firing'))

/** A notification about an open incident is not a call. One about a closed incident is a new call. */
function countCalls(notifications: readonly Notification[]): number {
  const open = new Set<string>()
  let calls = 0
  for (const { receiver, groupKey, alerts } of notifications) {
    if (receiver !== 'on-call') continue
    const isFiring = alerts.some(({ status }) => status === 'firing')
    if (isFiring && !open.has(groupKey)) calls += 1
    if (isFiring) open.add(groupKey)
    else open.delete(groupKey)
  }
  return calls
}
