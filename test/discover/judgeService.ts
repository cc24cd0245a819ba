import { setup } from '../sandbox/setup.ts'
import { type Asked, ask, customers } from './ask.ts'
import { type RandomService, randomService } from './randomService.ts'

/** What `outboxd discover` made of one service. */
export interface Judged {
  service: RandomService
  asked: Asked
  /** What it said that is not so, or did not say though it could be seen; in words. */
  wrong: readonly string[]
  /** How many settings it named. */
  named: number
}

/** Starts the service of a seed, asks it, and compares with the truth. */
export async function judgeService(seed: number): Promise<Judged> {
  const service = randomService(seed)
  await using started = await setup({ rateLimitRequests: 100, ...service.options })
  const asked = await ask(started.sandbox.url, customers)
  const wrong = Object.entries(service.truth).flatMap(([name, { found, surely }]) => {
    const finding = asked.findings[name]
    if (finding === undefined) return [`${name}: there is no such question`]
    const said = `${finding.found} (${finding.certainty}: ${finding.why})`
    if (finding.found === null) return surely ? [`${name}: ${said}, and it can be seen to be ${found}`] : []
    return found.test(finding.found) ? [] : [`${name}: ${said}, and it is ${found}`]
  })
  const named = Object.keys(service.truth).filter((name) => asked.findings[name]?.found != null).length
  return { service, asked, wrong, named }
}
