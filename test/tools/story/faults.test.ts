import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { faults } from '../../../tools/story/faults.ts'
import { checkout } from '../../support/program.ts'

const rules = parse(readFileSync(join(checkout, 'deploy/prometheus-rules.yaml'), 'utf8')) as {
  groups: { rules: { alert?: string }[] }[]
}
const alerts = rules.groups.flatMap((group) => group.rules).map(({ alert }) => alert)

test.each(faults)('$name expects only alerts that exist', ({ alerts: wanted, also = [] }) => {
  const names = [...wanted, ...also].map((each) => each.split('/')[0])
  expect(names.filter((name) => !alerts.includes(name))).toEqual([])
})

test.each(faults)('$name: the runbook names the cause under the alert that reports it', ({
  alerts: [first = ''],
  cause,
}) => {
  const [name] = first.split('/')
  const sections = readFileSync(join(checkout, 'docs/run/runbook.md'), 'utf8').split('\n## ')
  expect(sections.find((section) => section.startsWith(`${name}\n`))).toMatch(cause.runbook)
})
