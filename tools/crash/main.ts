import { parseArgs } from 'node:util'
import { runCampaign } from './campaign.ts'
import { strikeAtEachStatement } from './eachStatement.ts'
import { isMutation, mutations } from './mutations.ts'
import { printEachStatement, printResult } from './printReport.ts'

const usage = `npm run crash -- [--kills N | --each-statement] [--seed S] [--daemons N] [--mutation NAME] [--postgres DIR] [--pooler]
  --kills     kill -9 so many daemons; it goes on until each fault has struck (default 200)
  --each-statement  kill -9 a daemon before and after each statement on a record's way, without other faults
  --seed      of all chances (default 1); a multiple of 3 makes the service answer a repeated key with E002
  --daemons   at once (default 6, and 3 with --each-statement)
  --mutation  break the guarantee on purpose, in a copy of the source: ${Object.keys(mutations).join(', ')}
  --postgres  another PostgreSQL for outbox and ledger: the folder of its binaries, such as /usr/lib/postgresql/15/bin
  --pooler    daemons and commands reach Postgres through pgbouncer in transaction mode, which must be installed
Leaves with 0 where the guarantee held, with 1 where it was broken.
`

const { values } = parseArgs({
  options: {
    'each-statement': { type: 'boolean', default: false },
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    daemons: { type: 'string' },
    mutation: { type: 'string' },
    postgres: { type: 'string' },
    pooler: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const isEach = values['each-statement']
const numbers = [values.kills, values.seed, values.daemons ?? (isEach ? 3 : 6)].map(Number)
const [kills = 0, seed = 0, daemons = 0] = numbers
const wrong = numbers.some((n) => !Number.isInteger(n) || n < 0) || (values.mutation && !isMutation(values.mutation))

if (values.help || wrong) {
  process.stderr.write(usage)
  process.exitCode = values.help ? 0 : 2
} else {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => interrupted.abort(new Error(signal)))
  const options = {
    seed,
    daemons,
    mutation: values.mutation && isMutation(values.mutation) ? values.mutation : null,
    postgresDir: values.postgres ?? null,
    isPooled: values.pooler,
    signal: interrupted.signal,
    say: (text: string) => void process.stderr.write(`${text}\n`),
  }
  const { text, violations } = isEach ? await killAtEachStatement() : await killAtRandom()
  // Without `exit`, Node 26 may wait forever, with a busy CPU, for a handle that it never closes.
  process.stdout.write(text, () => process.exit(violations.length > 0 ? 1 : 0))

  async function killAtEachStatement() {
    const result = await strikeAtEachStatement(options)
    return { text: printEachStatement(result), violations: result.violations }
  }

  async function killAtRandom() {
    const result = await runCampaign({ ...options, kills, rareMs: 75_000 })
    return { text: printResult(result), violations: result.violations }
  }
}
