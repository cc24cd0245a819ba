/**
 * npm run model -- [FILTER] [--small] [--trace]
 *
 *     FILTER    only runs whose name contains this, such as Budget
 *     --small   only the runs that the test suite has, too: 20 s instead of 10 minutes
 *     --trace   show the steps to each broken promise, not only to those that nobody broke on purpose
 *
 * Explores every order in which the steps of the protocol can happen. A run is a model, how much may happen, and what the run
 * adds to the rules. "ok": the rules must hold. "found": one rule is broken on purpose, and the checker must notice. Exits
 * with 1 if a run ends differently.
 */
import { parseArgs } from 'node:util'
import { readRuns } from './runs.ts'

const options = { small: { type: 'boolean' }, trace: { type: 'boolean' } } as const
const { values, positionals } = parseArgs({ allowPositionals: true, options })
const [filter = ''] = positionals
const runs = readRuns().filter(({ name, isSmall }) => name.includes(filter) && (isSmall || !values.small))
if (runs.length === 0) throw new Error(`no run has "${filter}" in its name`)

for (const { kind, name, check } of runs) {
  const startMs = performance.now()
  const { states, broken, trace } = check()
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
  const isRight = (kind === 'ok') === (broken === null)
  console.log(
    `${isRight ? kind.padEnd(5) : 'WRONG'} ${name}: ${broken ? `${broken}; ` : ''}${states} states, ${seconds} s`,
  )
  if (broken && (values.trace || !isRight)) console.log(trace.map((label) => `        ${label}\n`).join(''))
  if (!isRight) process.exitCode = 1
}
