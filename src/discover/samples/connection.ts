import type { ConnectionSeen } from '../connection.ts'
import type { Sample } from '../question.ts'
import { firstCallSample } from './firstCall.ts'

/** How long an idle connection is waited for with --slow. */
const idleMaxMs = 130_000

/** A connection looked at by hand; with --slow until the service ends it. */
export const connectionSample: Sample<ConnectionSeen> = {
  name: 'a connection of its own',
  requestsMax: 1,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    return parts.connect({ idleMaxMs: parts.given.slow ? idleMaxMs : 0 })
  },
}
