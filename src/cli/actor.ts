import { hostname, userInfo } from 'node:os'
import type { StatedActor } from '../ledger/operator/operator.ts'
import type { CommandContext } from './context.ts'

/** What every command takes that changes something. */
export interface ActorOptions {
  as?: string | undefined
  reason?: string | undefined
}

/** Who gives the command, and why, for the logs. */
export function actorOf({ env }: Pick<CommandContext, 'env'>, { as, reason }: ActorOptions): StatedActor {
  const who = as === undefined ? operatorName(env) : `operator ${as.trim()}`
  return { who, reason: reason?.trim() || null }
}

/** The one who called sudo, or the name of the operating system, or by number. */
function operatorName({ SUDO_USER }: CommandContext['env']): string {
  return `operator ${SUDO_USER || userName()}`
}

/** user@host of this process, whatever name was given. */
export const accountName = (): string => `${userName()}@${hostname()}`

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
