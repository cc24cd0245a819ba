import type { Fault } from './faults.ts'
import type { Notification, ToldAlert } from './notifications.ts'

/** An alert of a site, when somebody was first told. */
export interface Told {
  /** Its name, and after a slash what it names. */
  name: string
  afterMs: number
  receiver: string
  /** What it says. */
  text: string
}

/** What came of a fault. */
export interface Verdict {
  /** When the alert that tells of it was told; null: never. */
  expected: Told | null
  /** What was told beside it, the first first. */
  others: Told[]
  /** How often somebody was called. */
  calls: number
  /** What is wrong with that, in words; empty where the right person was told the right thing. */
  faulty: string[]
}

/** What an alert says beside its name: which of several of its name it is. */
const distinguishing = ['kind', 'reason', 'database', 'certificate']

export function nameOf({ labels }: Pick<ToldAlert, 'labels'>): string {
  return [labels.alertname, ...distinguishing.flatMap((label) => labels[label] ?? [])].join('/')
}

/** Whether an alert is the one that is meant; a name without a slash means all of that name. Pure. */
export const isMeant = (meant: readonly string[], name: string): boolean =>
  meant.some((each) => name === each || name.startsWith(`${each}/`))

/**
 * Judges what was told while a fault stood. Pure.
 *
 * @param notifications of the fault's job alone
 * @param begunMs when it began, on the same clock
 * @param status the first line of `outboxd status` when the alert was told
 * @param section gives the runbook's section that the alert points to, null where there is none
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

/** When each alert was told first. */
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

/** An incident that is open is only written to; one that was closed is a call again. */
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
