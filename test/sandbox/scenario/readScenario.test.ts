import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseScenarioText } from '../../../src/sandbox/scenario/readScenario.ts'
import { scenarioJsonSchemaText } from '../../../src/sandbox/scenario/scenarioSchema.ts'
import { FilesInvalid } from '../../../src/yaml/yamlDocument.ts'

test('scenario.schema.json is current (to update it: npm test -- test/sandbox/scenario/readScenario -u)', async () => {
  await expect(scenarioJsonSchemaText()).toMatchFileSnapshot('../../../docs/scenarios/scenario.schema.json')
})

const examples = readdirSync('docs/scenarios').filter((name) => name.endsWith('.yaml'))

test.each(examples)('docs/scenarios/%s is valid and names its schema', (name) => {
  const text = readFileSync(`docs/scenarios/${name}`, 'utf8')
  expect(problems(text)).toEqual([])
  expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=./scenario.schema.json')
})

test('every problem is reported at once, with line and column', () => {
  expect(
    problems(`clock: today
settings:
  rateLimitRequest: 5
  failureShare: 2
faults:
  - kind: answr
  - { kind: answer, stauts: 503 }
  - { kind: drop, times: 0 }
  - { status: 503 }
records:
  - macth: {}
  - match: { customerId: { patern: x } }
    statuses: [pendign]
  - match: { a: { pattern: "(" } }
    answers: [{ kind: answer, status: 503, endpoint: submit }]
    statuses: [pending, { kind: drop, share: 0.5 }]
  - { endpoint: order, match: {}, statuses: [failed] }
expectations:
  - { requests: { status: 42 } }
  - { requests: { enpoint: submit }, count: -1 }
`),
  ).toEqual([
    '1:8 "clock": must be system or a time such as 2026-01-01T00:00:00Z',
    '3:3 unknown key "rateLimitRequest"',
    '4:17 "failureShare": Too big: expected number to be <=1',
    expect.stringMatching(/^6:11 "kind": Invalid discriminator value. Expected 'answer' | 'redirect' | /),
    '7:5 "status": Invalid input: expected number, received undefined',
    '7:21 unknown key "stauts"',
    '8:26 "times": Too small: expected number to be >=1',
    expect.stringMatching(/^9:5 "kind": Invalid discriminator value. Expected 'answer' | 'redirect' | /),
    '11:5 "match": Invalid input: expected record, received undefined',
    '11:5 unknown key "macth"',
    '12:14 "pattern": Invalid input: expected string, received undefined',
    '12:28 unknown key "patern"',
    '13:16 "0": must be pending, completed, failed, failed CODE (as failed E001), or a fault (as {kind: drop})',
    '14:28 "pattern": must be a regular expression, as new RegExp(…, "u") takes it',
    '15:44 unknown key "endpoint"',
    '16:15 "statuses": must end with pending, completed or failed',
    '16:39 unknown key "share"',
    '17:45 "statuses": must not fail an order, because the interface has no failed order (3.2); use the fault unknown_status',
    '19:27 "status": Too small: expected number to be >=100',
    '20:19 unknown key "enpoint"',
    '20:45 "count": Too small: expected number to be >=0',
  ])
})

function problems(text: string): string[] {
  try {
    parseScenarioText('s.yaml', text)
    return []
  } catch (error) {
    if (!(error instanceof FilesInvalid)) throw error
    return error.problems.map(({ line, column, message }) => `${line}:${column} ${message}`)
  }
}
