import type { ConnectionSeen } from '../connection.ts'
import { type Finding, likely, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { connectionSample } from '../samples/connection.ts'
import { showMs } from '../showMs.ts'

export const keepAlive: Question = {
  name: 'keep-alive',
  section: '1',
  asks: 'how long it keeps an idle connection open (seen with --slow, else as it says)',
  requestsMax: 0,
  recordsMax: 0,
  samples: [connectionSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeKeepAlive(await parts.sample(connectionSample))
  },
}

/** Pure. */
export function judgeKeepAlive(seen: ConnectionSeen): Finding {
  const assumed = 'any: each POST has a connection of its own'
  if (seen.kind === 'failed') return unknown(seen.why, { assumed })
  if (seen.closes) return sure('closed at once', 'Connection: close', { assumed })
  if (seen.endedAfterMs !== null)
    return sure(showMs(seen.endedAfterMs), 'then it ended an idle connection', { assumed })
  if (seen.keepAliveSeconds !== null)
    return likely(`${seen.keepAliveSeconds} s`, `Keep-Alive: timeout=${seen.keepAliveSeconds}`, { assumed })
  return unknown('it keeps connections, and does not say for how long', { assumed })
}
