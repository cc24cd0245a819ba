import { type Environment, runToEnd } from './environment.ts'
import type { Fleet } from './fleet.ts'
import type { ProgramCopy } from './programCopy.ts'
import { retryPatiently } from './retryPatiently.ts'

/** How long to start `migrate` again if the database crashes. It continues where it was. */
const migrateWithinMs = 600_000

/**
 * Does what docs/run/operations.md, "Upgrading", says, under load. The new version migrates while the old daemons run. Then these are
 * restarted one after the other, by SIGTERM and SIGKILL in turn.
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
