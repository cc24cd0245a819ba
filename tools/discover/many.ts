import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

/** `npm run discover:many`: asks random services, and sends a batch to some of them with the settings that were found. */
const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '60' },
    batches: { type: 'string', default: '4' },
    concurrency: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    judged: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(`npm run discover:many -- [--services 60] [--batches 4] [--concurrency 20] [--seed 1] [--judged FILE]

Draws services from all settings of the sandbox, asks each with outboxd discover --rate, and compares with the settings.
Through the first BATCHES of them a daemon sends 100 records with what discover wrote. CONCURRENCY services are asked at once,
because most of the time is spent waiting for a window. FILE gets every answer as a line of JSON.
`)
  process.exit(0)
}
const { services, batches, concurrency, seed, judged } = values
const env = { ...process.env, SERVICES: services, BATCHES: batches, SEED: seed, ...(judged ? { JUDGED: judged } : {}) }
const vitest = ['vitest', 'run', '--config', 'test/vitest.config.ts', '--maxConcurrency', concurrency]
const files = ['e2e/discover/services', 'e2e/services/discovered']
spawn('npx', [...vitest, ...files], { stdio: 'inherit', env }).on('exit', (code) => process.exit(code ?? 1))
