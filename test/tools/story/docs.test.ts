import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { faults } from '../../../tools/story/faults.ts'
import { isMeant } from '../../../tools/story/judge.ts'
import { checkout } from '../../support/program.ts'

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')
const sections = read('docs/run/runbook.md').split(/^## /m)
const alerts: string[] = parse(read('deploy/prometheus-rules.yaml'))
  .groups.flatMap(({ rules }: { rules: { alert?: string }[] }) => rules)
  .flatMap(({ alert }: { alert?: string }) => alert ?? [])

/** The table in tools/README.md: what the story printed last. */
const rows = [...read('tools/README.md').matchAll(/^\| ([\w-]+): (.+?) \| (\S+) \| \d+ min \|/gm)].map(
  ([, name, what, alert = '']) => ({ name, what, alert }),
)

test('tools/README.md has a row for each fault, in the words of the fault', () => {
  expect(rows.map(({ name, what }) => ({ name, what }))).toEqual(faults.map(({ name, what }) => ({ name, what })))
})

describe.each(faults)('$name', ({ name, alerts: wanted, also = [], cause }) => {
  test('has one of its expected alerts in tools/README.md', () => {
    expect(rows.find((row) => row.name === name)?.alert).toSatisfy((alert: string) => isMeant(wanted, alert))
  })

  test('expects only alerts that exist', () => {
    expect([...wanted, ...also].map((each) => each.split('/')[0])).toSatisfy((names: string[]) =>
      names.every((each) => alerts.includes(each)),
    )
  })

  test('has its cause in the runbook’s section of each expected alert', () => {
    for (const alert of wanted.map((each) => each.split('/')[0]))
      expect(sections.find((section) => section.startsWith(`${alert}\n`))).toMatch(cause.runbook)
  })
})
