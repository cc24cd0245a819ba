import { parseArgs } from 'node:util'
import { runErp } from './runErp.ts'
import { explainMissingTryton } from './tryton.ts'

const usage = `npm run test:erp -- [--customers N] [--sales N] [--kills N] [--pairs N]
  --customers  with a number each (default 60)
  --sales      of 1 to 8 lines, by three processes at once; some are changed, cancelled and confirmed again (default 200)
  --kills      kill -9 the daemon so often meanwhile (default 10)
  --pairs      sales that are confirmed twice to compare the time with change capture and without (default 100)
Needs Tryton from Debian, and installs nothing. Compares what the service got with Tryton's own report, to the cent and
line by line. Confirms the same sales with change capture and without, in turns: at most 10 % longer. Leaves with 1 if one does not hold.
`

const { values } = parseArgs({
  options: {
    customers: { type: 'string', default: '60' },
    sales: { type: 'string', default: '200' },
    kills: { type: 'string', default: '10' },
    pairs: { type: 'string', default: '100' },
    help: { type: 'boolean', default: false },
  },
})
const numbers = [values.customers, values.sales, values.kills, values.pairs].map(Number)
const [customers = 0, sales = 0, kills = 0, pairs = 0] = numbers
const missing = explainMissingTryton()

if (values.help || numbers.some((n) => !Number.isInteger(n) || n < 0)) {
  process.stderr.write(usage)
  process.exitCode = values.help ? 0 : 2
} else if (missing !== null) {
  process.stderr.write(`${missing}\n`)
  process.exitCode = 2
} else {
  const say = (text: string) => process.stderr.write(`${text}\n`)
  const result = await runErp({ customers, sales, kills, pairs, sellers: 3, say })
  const { slowdown, violations } = result
  const text = `
${result.versions} confirmed versions of sales, ${result.arrivals} requests that had an effect
${result.kills} kills of the daemon, ${result.uncertain} records in doubt
a confirmation with change capture takes ${slowdown.median.toFixed(3)} times as long as without (the median of ${slowdown.pairs} pairs; with 99.8 % certainty ${slowdown.low.toFixed(3)} to ${slowdown.high.toFixed(3)})
${violations.length === 0 ? 'What the service got equals what Tryton reports, to the cent and line by line.' : violations.join('\n')}
`
  // For the reason, see tools/crash/main.ts.
  process.stdout.write(text, () => process.exit(violations.length > 0 ? 1 : 0))
}
