import { type Environment, runToEnd } from './environment.ts'
import type { Fleet } from './fleet.ts'
import type { ProgramCopy } from './programCopy.ts'
import { retryPatiently } from './retryPatiently.ts'

/** It begins again where it was when the database crashed under it. */
const migrateWithinMs = 600_000

/**
 * What docs/run/operations.md, "Upgrading", says, while all else goes on: the new version migrates beside the daemons of the old one, and
 * these are restarted one after the other, by SIGTERM and by SIGKILL in turn.
 */
export async function upgrade(
  { env }: Environment,
  fleet: Fleet,
  program: ProgramCopy,
  say: (text: string) => void,
): Promise<void> {
  await retryPatiently(() => runToEnd(program, ['migrate', '--outbox'], env), migrateWithinMs)
  say('migrated; the daemons are restarted one after the other')
  for (const berth of fleet.berths) await berth.replace(program, berth.number % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
  say('every daemon is of the new version')
}
