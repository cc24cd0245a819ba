import { expect, onTestFinished, test } from 'vitest'
import { strikeAtEachStatement } from '../../../tools/crash/eachStatement.ts'
import { printEachStatement } from '../../../tools/crash/printReport.ts'

test('kill -9 before and after each statement on the way of a record: the guarantee holds', async () => {
  const ended = new AbortController()
  onTestFinished(() => ended.abort())
  const result = await strikeAtEachStatement({
    seed: 4,
    daemons: 3,
    mutation: null,
    postgresDir: null,
    isPooled: false,
    say: () => {},
    signal: ended.signal,
  })
  // If CI tries it once more and that passes, only this shows what was wrong.
  if (result.violations.length > 0) console.log(printEachStatement(result))
  expect(result.violations, printEachStatement(result)).toEqual([])
  const covered = result.statements.filter(({ struck }) => struck.length === 2)
  expect(covered.length, printEachStatement(result)).toBeGreaterThan(Math.max(10, result.statements.length * 0.8))
}, 900_000)
