import type { KeyOnFailure } from './keyOrder.ts'

/** The settings that all instances on one ledger should share. */
export interface SharedSettings {
  requests: number
  windowMs: number
  requestTimeoutMs: number
  keyOnFailure: KeyOnFailure
}

/** What an instance was given. */
export interface InstanceSettings extends SharedSettings {
  instanceId: string
  host: string
}

/** What holds while instances differ, and who does. */
export interface Agreement {
  requests: number
  windowMs: number
  differences: { subject: string; detail: string }[]
}

/**
 * The safest combination of what live instances were given: the smallest limit, the longest window. A request's timeout
 * and KEY_ON_FAILURE each instance keeps for itself: slots are taken for the timeout of who takes them. Pure.
 */
export function agree(instances: readonly InstanceSettings[]): Agreement {
  const requests = Math.min(...instances.map((each) => each.requests))
  const windowMs = Math.max(...instances.map((each) => each.windowMs))
  const differences = [
    ...differing(instances, 'RATE_LIMIT_REQUESTS', ({ requests }) => requests, `${requests} holds`),
    ...differing(instances, 'RATE_LIMIT_WINDOW_SECONDS', ({ windowMs }) => windowMs / 1000, `${windowMs / 1000} holds`),
    ...differing(instances, 'REQUEST_TIMEOUT_SECONDS', (each) => each.requestTimeoutMs / 1000, 'each keeps its own'),
    ...differing(instances, 'KEY_ON_FAILURE', ({ keyOnFailure }) => keyOnFailure, 'each keeps its own'),
  ]
  return { requests, windowMs, differences }
}

/** One line for each instance, where they are not all the same. */
function differing(
  instances: readonly InstanceSettings[],
  variable: string,
  given: (settings: InstanceSettings) => number | string,
  whatHolds: string,
): Agreement['differences'] {
  const values = [...new Set(instances.map(given))]
  if (values.length < 2) return []
  return instances.map((each) => ({
    subject: `${each.instanceId.slice(0, 8)} on ${each.host}: ${variable}`,
    detail: `${variable} is ${given(each)} here; the instances have ${values.sort().join(' and ')}, and ${whatHolds} until they are the same`,
  }))
}
