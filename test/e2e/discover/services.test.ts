import { appendFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { type Judged, judgeService } from '../../discover/judgeService.ts'

/**
 * Draws services from all settings of the sandbox, and runs `outboxd discover` on each. `npm run discover:many` draws
 * many; `-- --services 60`, `-- --seed 7` says how many and from which seed on. JUDGED=FILE keeps every answer.
 */

const from = Number(process.env.SEED ?? 1)
const count = Number(process.env.SERVICES ?? (process.env.LONG ? 12 : 2))
const seeds = Array.from({ length: count }, (_, i) => from + i)
const all: Judged[] = []

test.concurrent.each(seeds)('discover is not both sure and wrong about any setting of the service of seed %i', {
  timeout: 900_000,
}, async (seed) => {
  const { judged } = await judgeService(seed)
  all.push(...judged)
  if (process.env.JUDGED) for (const each of judged) appendFileSync(process.env.JUDGED, `${JSON.stringify(each)}\n`)
  expect(judged.filter(({ wrong, certainty }) => wrong && certainty === 'sure')).toEqual([])
})

afterAll(() => {
  const share = (is: (each: Judged) => boolean) => all.filter(is).length / Math.max(1, all.length)
  const wrongLikely = share(({ wrong, certainty }) => wrong && certainty === 'likely')
  const notAsked = share(({ certainty }) => certainty === 'not asked')
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`
  const unknown = share(({ certainty }) => certainty === 'unknown')
  process.stdout.write(
    `${all.length} answers of ${seeds.length} services: ${percent(wrongLikely)} likely and wrong, ${percent(notAsked)} not asked, ${percent(unknown)} unknown\n`,
  )
  // A few services are too few for a share.
  if (count >= 10) expect(wrongLikely).toBeLessThanOrEqual(0.02)
  expect(notAsked).toBeLessThanOrEqual(0.1)
})
