import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

/** `npm run discover:many`: asks services that are drawn at random, and lets a daemon work with what was found of some of them. */
const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '60' },
    batches: { type: 'string', default: '4' },
    seed: { type: 'string', default: '1' },
    judged: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(`npm run discover:many -- [--services 60] [--batches 4] [--seed 1] [--judged FILE]

Draws services from all settings of the sandbox, asks each with outboxd discover --rate, and compares with the settings.
Through the first BATCHES of them a daemon sends a batch with what discover wrote. FILE gets every answer as a line of JSON.
`)
  process.exit(0)
}
const { services, batches, seed, judged } = values
const env = { ...process.env, SERVICES: services, BATCHES: batches, SEED: seed, ...(judged ? { JUDGED: judged } : {}) }
// Most of the time is spent waiting for a window to pass, so many services can be asked side by side.
const vitest = ['vitest', 'run', '--config', 'test/vitest.config.ts', '--maxConcurrency', '20']
const files = ['discover/services', 'e2e/services/discovered']
spawn('npx', [...vitest, ...files], { stdio: 'inherit', env }).on('exit', (code) => process.exit(code ?? 1))
