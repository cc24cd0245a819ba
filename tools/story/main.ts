import { parseArgs } from 'node:util'
import { has } from '../../test/support/monitoring.ts'
import { faults } from './faults.ts'
import { printStory } from './printStory.ts'
import { runStory } from './story.ts'

const usage = `npm run story -- [--only NAME,…] [--minutes N] [--healthy N] [--at-once N]
  Lets each fault happen to a daemon of its own, under a real Prometheus and a real Alertmanager with our rules ten times as
  quick, and prints which alert tells of it, after how long, and what is told beside it. Minutes are those of full length.
  --only     these faults: ${faults.map(({ name }) => name).join(', ')}
  --minutes  for how long each stands (default 30)
  --healthy  for how long nothing is wrong before (default 6)
  --at-once  so many at a time (default 6; a machine that is busy makes everything slow, and that is told)
Leaves with 0 where each fault is told by an alert that names it and by no other, with 1 where not.
`

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    minutes: { type: 'string', default: '30' },
    healthy: { type: 'string', default: '6' },
    'at-once': { type: 'string', default: '6' },
    help: { type: 'boolean', default: false },
  },
})
const names = values.only.split(',').filter((name) => name !== '')
const chosen = faults.filter(({ name }) => names.length === 0 || names.includes(name))
const [minutes = 0, healthyMinutes = 0, atOnce = 0] = [values.minutes, values.healthy, values['at-once']].map(Number)
const wrong = !(minutes > 0 && healthyMinutes > 0 && atOnce > 0) || chosen.length < names.length
const missing = ['prometheus', 'prometheus-alertmanager'].filter((program) => !has(program))

if (values.help || wrong) {
  process.stderr.write(usage)
  process.exitCode = values.help ? 0 : 2
} else if (missing.length > 0) {
  process.stderr.write(`missing: ${missing.join(', ')} (Debian’s packages have these names)\n`)
  process.exitCode = 2
} else {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => interrupted.abort(new Error(signal)))
  const begun = performance.now()
  const impossible = chosen.flatMap(({ name, whyImpossible }) => {
    const why = whyImpossible?.() ?? null
    return why === null ? [] : [{ name, why }]
  })
  const chapters = await runStory({
    faults: chosen.filter(({ name }) => !impossible.some((each) => each.name === name)),
    minutes,
    healthyMinutes,
    atOnce,
    say: (text) => process.stderr.write(`${((performance.now() - begun) / 1_000).toFixed(0).padStart(4)} s  ${text}\n`),
    signal: interrupted.signal,
  })
  process.stdout.write(printStory(chapters, impossible))
  process.exitCode = chapters.some(({ verdict }) => verdict.faulty.length > 0) ? 1 : 0
}
