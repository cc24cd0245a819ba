import { notShownSettings } from '../../src/sandbox/notShownSettings.ts'
import type { SandboxOptions } from '../../src/sandbox/startSandbox.ts'
import { createSeededRandom, type SeededRandom } from '../../tools/crash/seededRandom.ts'
import { alternatives, type NotShown } from '../support/serviceAlternatives.ts'
import { type Truth, truthOf } from './truthOf.ts'

/** A service that somebody may have to do with. */
export interface RandomService {
  seed: number
  /** For `startSandbox`, beside a database and a port. */
  options: Partial<SandboxOptions>
  /** Of `options`, what the interface does not show. */
  notShown: NotShown
  /** What is to be found out, by the name of the question. */
  truth: Record<string, Truth>
}

/** How likely it is that a service does as the sandbox does by default, question by question. */
const usualShare = 0.4

/** Draws a service: each question is answered alone, but where two answers exclude each other. */
export function randomService(seed: number): RandomService {
  const notShown = consistent(drawn(createSeededRandom(seed, 'service')))
  const bodyLimitBytes = createSeededRandom(seed, 'body limit').pick([65_536, 262_144, 1_048_576])
  const options = { ...notShown, bodyLimitBytes, processingTime: 'constant:2', seed }
  return { seed, options, notShown, truth: truthOf(notShown) }
}

function drawn(random: SeededRandom): NotShown {
  const names = Object.keys(alternatives) as (keyof NotShown)[]
  return Object.fromEntries(
    names.map((name) => [
      name,
      random.chance(usualShare)
        ? notShownSettings[name].parse(undefined)
        : random.pick<NotShown[keyof NotShown]>(alternatives[name]),
    ]),
  ) as NotShown
}

/** Who compresses what nobody can read tells nothing else, so that is a service for itself. */
function consistent(service: NotShown): NotShown {
  return service.compression === 'always' ? { ...service, compression: 'asked' } : service
}
