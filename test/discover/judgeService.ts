import { setup } from '../sandbox/setup.ts'
import { type Asked, ask, customers } from './ask.ts'
import { givenFor, type RandomService, randomService, windowSeconds } from './randomService.ts'
import { truthOf } from './truthOf.ts'

/** An answer beside what is true. */
export interface Judged {
  seed: number
  question: string
  certainty: string
  said: string
  /** Whether the answer is false. */
  wrong: boolean
}

/** Starts the service of a seed, asks it as docs/start/discover.md says, and compares with its settings. */
export async function judgeService(seed: number): Promise<{ service: RandomService; asked: Asked; judged: Judged[] }> {
  const service = randomService(seed)
  await using started = await setup(service.options)
  const asked = await ask(
    started.sandbox.url,
    { ...customers, rate: true, ...givenFor(service) },
    { RATE_LIMIT_WINDOW_SECONDS: String(windowSeconds) },
  )
  const truth = truthOf(service.settings)
  const judged = Object.entries(asked.findings).map(([question, { found, certainty, why }]) => {
    const isRight = found === null || certainty === 'unknown' || truth[question]?.(found)
    return { seed, question, certainty, said: `${found} (${why})`, wrong: isRight !== true }
  })
  return { service, asked, judged }
}
