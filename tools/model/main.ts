import { parseArgs } from 'node:util'
import { readRuns } from './runs.ts'

const usage = `npm run model -- [FILTER] [--small] [--trace]
  FILTER    only runs whose name contains this, such as budget
  --small   only the runs that the test suite has, too: 15 s instead of 12 minutes
  --trace   show the steps to each broken promise, not only to those that nobody broke on purpose
Explores every order in which the steps of the protocol can happen. A run is a model, how much may happen, and what the run
adds to the rules. "ok": the rules must hold. "found": one rule is broken on purpose, and the checker must notice.
Exits with 1 if a run ends differently.
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    small: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const runs = readRuns().filter(({ name, isSmall }) => name.includes(positionals[0] ?? '') && (isSmall || !values.small))

if (values.help || positionals.length > 1 || runs.length === 0) {
  process.stderr.write(runs.length === 0 ? 'no run has such a name\n' : usage)
  process.exitCode = values.help ? 0 : 2
} else
  for (const { kind, name, check } of runs) {
    const startMs = performance.now()
    const seconds = () => `${((performance.now() - startMs) / 1000).toFixed(1)} s`
    const { states, broken, trace } = check((states) =>
      process.stderr.write(`${name}: ${states} states, ${seconds()} …\n`),
    )
    const isRight = (kind === 'ok') === (broken === null)
    console.log(
      `${isRight ? kind.padEnd(5) : 'WRONG'} ${name}: ${broken ? `${broken}; ` : ''}${states} states, ${seconds()}`,
    )
    if (broken && (values.trace || !isRight)) console.log(trace.map((label) => `        ${label}\n`).join(''))
    if (!isRight) process.exitCode = 1
  }
