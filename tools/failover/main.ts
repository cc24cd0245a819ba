import { parseArgs } from 'node:util'
import { isMutation, mutations } from '../crash/mutations.ts'
import { printFailovers } from './printFailovers.ts'
import { isMode, runFailovers } from './runFailovers.ts'

const usage = `npm run failover -- [--times N] [--minutes N] [--mode sync|undeclared|async] [--seed S] [--daemons N] [--mutation NAME] [--postgres DIR]
  --times     kill -9 the primary and promote its standby so often (default 20)
  --minutes   or fewer, where it takes longer (default 120)
  --mode      sync: every COMMIT waits for the standby, and LEDGER_STANDBY says so: sending goes on by itself (default)
              undeclared: the same without LEDGER_STANDBY: it stops until outboxd recover
              async: the standby is cut off before, and lacks what came then: it stops until outboxd recover
  --seed      of all chances (default 1)
  --daemons   at once (default 3)
  --mutation  break the guarantee on purpose, in a copy of the source: ${Object.keys(mutations).join(', ')}
  --postgres  another PostgreSQL for outbox and ledger: the folder of its binaries, such as /usr/lib/postgresql/15/bin
Leaves with 0 if nothing was lost and nothing sent twice, with 1 otherwise.
`

const { values } = parseArgs({
  options: {
    times: { type: 'string', default: '20' },
    minutes: { type: 'string', default: '120' },
    mode: { type: 'string', default: 'sync' },
    seed: { type: 'string', default: '1' },
    daemons: { type: 'string', default: '3' },
    mutation: { type: 'string' },
    postgres: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const numbers = [values.times, values.seed, values.daemons, values.minutes].map(Number)
const [times = 0, seed = 0, daemons = 0, minutes = 0] = numbers
const { mode, mutation } = values
const isWrong = numbers.some((n) => !Number.isInteger(n) || n < 0) || (mutation !== undefined && !isMutation(mutation))

if (values.help || isWrong || !isMode(mode)) {
  process.stderr.write(usage)
  process.exitCode = values.help ? 0 : 2
} else {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => interrupted.abort(new Error(signal)))
  const result = await runFailovers({
    ...{ times, minutes, mode, seed, daemons, signal: interrupted.signal },
    mutation: mutation !== undefined && isMutation(mutation) ? mutation : null,
    postgresDir: values.postgres ?? null,
    say: (text) => process.stderr.write(`${text}\n`),
  })
  // For the reason, see tools/crash/main.ts.
  process.stdout.write(printFailovers(result), () => process.exit(result.violations.length > 0 ? 1 : 0))
}
