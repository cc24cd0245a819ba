import { Option } from 'commander'
import type { ActorOptions } from '../cli/actor.ts'
import { nameMost, personName } from '../cli/personName.ts'
import { reasonProblem } from '../operations/reason.ts'

const whoHelp = 'who does this, for the log (default: your name on this machine)'
export const asOption = new Option('--as <name>', whoHelp)
/** What `recover` called `--as` before `--as` took a name there, too. */
export const byOption = new Option('--by <name>', 'the same as --as NAME')
export const reasonOption = new Option('--reason <text>', 'why; the log keeps it')

/** What is wrong with the options of who and why. Pure. */
export function actorProblems({ as, reason }: ActorOptions): string[] {
  const wrongReason = reason === undefined ? null : reasonProblem(reason.trim())
  return [
    ...(as === undefined || personName(as) !== null ? [] : [`--as takes a name of at most ${nameMost} characters`]),
    ...(wrongReason === null ? [] : [`--reason ${wrongReason}`]),
  ]
}
