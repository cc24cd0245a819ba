import { Attempts } from '../../src/daemon/attempts.ts'
import type { DaemonContext } from '../../src/daemon/context.ts'
import type { PollDelays } from '../../src/daemon/pollPlanner.ts'
import type { Answer, ServiceRequest } from '../../src/model/service.ts'

/** The id of a record that was refused with two tokens. */
export const refusedBefore = 'refused before'

/** Attempts at a service that always gives the same answer, and the requests that it got. */
export function openAttempts({
  answer,
  config,
  nextPollDelayMs,
}: { answer: Answer; config: Partial<DaemonContext['config']> } & PollDelays) {
  const sent: { request: ServiceRequest; accessToken: string }[] = []
  const client = {
    async send(request: ServiceRequest, accessToken: string) {
      sent.push({ request, accessToken })
      return answer
    },
  }
  const attempts = new Attempts(
    { config, client, telemetry: { traceparent: () => undefined } } as unknown as DaemonContext,
    { isRefusedForAge: () => false, isRefusedAgain: (_token, _answer, _method, id) => id === refusedBefore },
    { nextPollDelayMs },
  )
  return { attempts, sent }
}
