import type { InstanceProblem } from '../ledger/instances.ts'
import { failureMessage } from '../observe/redact.ts'
import { pluralize } from '../plainText.ts'
import { formatIsoInstant } from '../time.ts'
import type { DaemonContext } from './context.ts'
import type { Dispatch } from './dispatch/dispatch.ts'
import type { OutcomeWriter } from './dispatch/outcomeWriter.ts'
import type { Heartbeat } from './heartbeat.ts'

/** The parts of a daemon that know of its problems. */
interface ProblemSources {
  heartbeat: Pick<Heartbeat, 'clockLeadMs'>
  dispatch: Pick<Dispatch, 'lostClaims' | 'lateRequests'>
  outcomes: Pick<OutcomeWriter, 'unwritten'>
}

/** Lost claims and unwritten outcomes become a problem after this time, because younger ones usually pass. */
const waitToTellMs = 10_000

const lateToTell = 5

/** Finds what is wrong with this daemon, for its heartbeat. */
export class InstanceProblems {
  readonly #daemon: DaemonContext
  readonly #sources: ProblemSources
  /** The age of each problem that stands, by kind and part. */
  #ages = new Map<string, () => number>()

  constructor(daemon: DaemonContext, sources: ProblemSources) {
    this.#daemon = daemon
    this.#sources = sources
  }

  find(): InstanceProblem[] {
    const before = this.#ages
    this.#ages = new Map()
    return this.#findNow().map((problem) => {
      const name = `${problem.kind} ${problem.part}`
      const age = before.get(name) ?? this.#daemon.clock.stopwatch()
      this.#ages.set(name, age)
      return { ...problem, ageMs: Math.round(age()) }
    })
  }

  #findNow(): Omit<InstanceProblem, 'ageMs'>[] {
    const { clock, health, credentials, host, log, databases } = this.#daemon
    const { heartbeat, dispatch, outcomes } = this.#sources
    const nowMs = clock.nowMs()
    const isOld = ({ sinceMs }: { sinceMs: number }) => nowMs - sinceMs >= waitToTellMs
    const problems: Omit<InstanceProblem, 'ageMs'>[] = []
    const add = (kind: InstanceProblem['kind'], part: string, detail: string) => problems.push({ kind, part, detail })

    for (const { loop, error } of health.failing()) add('loop_failing', loop, failureMessage(error))
    const unwritten = outcomes.unwritten().filter(isOld)
    const [first] = unwritten
    if (first !== undefined) {
      const why = first.error === null ? 'the database has not answered' : failureMessage(first.error)
      add(
        'loop_failing',
        'outcomes',
        `${pluralize(unwritten.length, 'outcome')} not written, the oldest (of submission ${first.submissionId}) since ${formatIsoInstant(first.sinceMs)}: ${why}`,
      )
    }
    if (dispatch.lateRequests() >= lateToTell)
      add(
        'budget_starved',
        'requests',
        'the deadlines of requests pass before they can leave: the database is far away or slow',
      )
    const lost = dispatch.lostClaims().filter(isOld)
    if (lost.length > 0) {
      const oldestMs = Math.min(...lost.map(({ sinceMs }) => sinceMs))
      add(
        'claim_lost',
        pluralize(lost.length, 'claim'),
        `the database has not answered a COMMIT since ${formatIsoInstant(oldestMs)}. None of the claimed records was sent. The daemon queues them again when the database says whether the COMMIT took effect`,
      )
    }
    if (databases.differences !== '') add('settings_differ', 'settings', databases.differences)
    const broken = credentials.broken()
    if (broken !== null) add('credentials_broken', 'credentials', broken.replaceAll('\n', '; '))
    const { clockLeadMs } = heartbeat
    if (clockLeadMs !== 0) {
      const seconds = Math.round(Math.abs(clockLeadMs) / 100) / 10
      const side = clockLeadMs > 0 ? 'ahead of' : 'behind'
      add('clock_off', 'clock', `the clock of ${databases.instance.host} is ${seconds} s ${side} the database’s`)
    }
    const hostFault = host.fault()
    if (hostFault !== null) add('host_failing', 'requests', hostFault)
    const logFault = log.fault()
    if (logFault !== null) add('log_failing', 'log', logFault)
    return problems
  }
}
