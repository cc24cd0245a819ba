import { parseArgs } from 'node:util'
import { runCampaign } from './campaign.ts'
import { isMutation, mutations } from './mutations.ts'
import { printResult } from './printReport.ts'

const usage = `npm run crash -- [--kills N] [--seed S] [--daemons N] [--mutation NAME] [--postgres DIR]
  --kills     kill -9 so many daemons; it goes on until each fault has struck (default 200)
  --seed      of all chances (default 1); a multiple of 3 makes the service answer a repeated key with E002
  --daemons   at once (default 6)
  --mutation  break the guarantee on purpose, in a copy of the source: ${Object.keys(mutations).join(', ')}
  --postgres  another PostgreSQL for outbox and ledger: the folder of its binaries, such as /usr/lib/postgresql/15/bin
Leaves with 0 where the guarantee held, with 1 where it was broken.
`

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    daemons: { type: 'string', default: '6' },
    mutation: { type: 'string' },
    postgres: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const numbers = [values.kills, values.seed, values.daemons].map(Number)
const [kills = 0, seed = 0, daemons = 0] = numbers
const wrong = numbers.some((n) => !Number.isInteger(n) || n < 0) || (values.mutation && !isMutation(values.mutation))

if (values.help || wrong) {
  process.stderr.write(usage)
  process.exitCode = values.help ? 0 : 2
} else {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => interrupted.abort(new Error(signal)))
  const mutation = values.mutation && isMutation(values.mutation) ? values.mutation : null
  const many = mutation !== null && 'stops' in mutations[mutation]
  const result = await runCampaign({
    signal: interrupted.signal,
    kills,
    seed,
    daemons,
    mutation,
    postgresDir: values.postgres ?? null,
    pace: {
      killMs: many ? 1_500 : 450,
      stopMs: many ? 1_500 : 12_000,
      restartMs: 12_000,
      insertMs: 200,
      erpMs: 3_000,
      hangMs: 20_000,
      clockMs: 15_000,
      pruneMs: 5_000,
      failOverMs: 60_000,
      restoreMs: 90_000,
      strangerMs: 20_000,
    },
    say: (text) => process.stderr.write(`${text}\n`),
  })
  // Without `exit`, Node 26 may wait forever, with a busy CPU, for a handle that it never closes.
  process.stdout.write(printResult(result), () => process.exit(result.violations.length > 0 ? 1 : 0))
}
