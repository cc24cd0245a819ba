import { startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere, verdict } from './harness/report.ts'
import { runShare } from './harness/runShare.ts'

const options = readOptions('bench:share: three daemons share one budget.', {
  windows: { default: '12', help: 'windows that count' },
})
const [limit, windowMs, daemons] = [100, 6_000, 3]
const countedWindows = Number(options.windows)

sayWhere('bench:share')
say(
  `${daemons} daemons with one budget of ${limit} requests in ${windowMs / 1000} s and too many records, over ` +
    `${countedWindows} windows. The fullest window counts, wherever it begins.`,
)
await using postgres = await startBenchPostgres()
const figures = await runShare({
  database: await postgres.createDatabase('share'),
  daemons,
  limit,
  windowMs,
  processingTime: 'lognormal:2:0.6',
  warmUpWindows: 4,
  countedWindows,
})
printTable(
  ['', 'measured', 'to reach', ''],
  [
    [
      'most requests in any window',
      `${figures.mostInAnyWindow}`,
      `at most ${limit}`,
      verdict(figures.mostInAnyWindow <= limit),
    ],
    ['of the limit used', `${(figures.used * 100).toFixed(1)} %`, 'at least 97 %', verdict(figures.used >= 0.97)],
    ['answered 429', `${figures.refused}`, 'none', verdict(figures.refused === 0)],
  ],
)
