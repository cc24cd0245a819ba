import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readScenario } from '../../../src/sandbox/scenario/readScenario.ts'
import { scenarioJsonSchema } from '../../../src/sandbox/scenario/scenarioSchema.ts'
import { FilesInvalid } from '../../../src/yaml/yamlDocument.ts'

test('scenario.schema.json is current (to write it anew: npm test -- test/sandbox/scenario/readScenario -u)', async () => {
  await expect(scenarioJsonSchema()).toMatchFileSnapshot('../../../docs/scenarios/scenario.schema.json')
})

const examples = readdirSync('docs/scenarios').filter((name) => name.endsWith('.yaml'))

test.each(examples)('docs/scenarios/%s is valid and names its schema', (name) => {
  const text = readFileSync(`docs/scenarios/${name}`, 'utf8')
  expect(problems(text)).toEqual([])
  expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=./scenario.schema.json')
})

test('everything that is wrong is told at once, with its line, its column and the nearest word', () => {
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
    '1:8 "clock" must be system or a time such as 2026-01-01T00:00:00Z',
    '3:3 unknown key "rateLimitRequest"; did you mean "rateLimitRequests"?',
    '4:17 "failureShare" is too large: at most 1',
    expect.stringMatching(/^6:11 "kind" must be answer or redirect or .*, and is "answr"; did you mean "answer"\?$/),
    '7:5 "status" is missing: a whole number',
    '7:21 unknown key "stauts"; did you mean "status"?',
    '8:26 "times" must be at least 1',
    expect.stringMatching(/^9:5 "kind" is missing: answer or redirect or /),
    '11:5 "match" is missing: keys with values',
    '11:5 unknown key "macth"; did you mean "match"?',
    '12:14 "pattern" is missing: text (quote it if it looks like a number)',
    '12:28 unknown key "patern"; did you mean "pattern"?',
    '13:16 item 1 must be pending, completed, failed, failed CODE (as failed E001), or a fault (as {kind: drop})',
    '14:28 "pattern" must be a regular expression, as new RegExp(…, "u") takes it',
    '15:44 unknown key "endpoint": known are kind, status, code, body, contentType, headers, when, times, delayMs',
    '16:15 "statuses" must end with pending, completed or failed',
    '16:39 unknown key "share": known are kind, when, times, delayMs',
    '17:45 "statuses" must not fail an order, because the interface has no failed order (3.2); use the fault unknown_status',
    '19:27 "status" must be at least 100',
    '20:19 unknown key "enpoint"; did you mean "endpoint"?',
    '20:45 "count" must be at least 0',
  ])
})

test('a number that no double holds keeps its digits', () => {
  const { records = [] } = readScenario(
    's.yaml',
    'records: [{ match: { a: 12345678901234567891, b: 12.50 } }]\nsettings: { failureShare: 0.50 }\n',
  )
  expect(JSON.stringify(records[0]?.match)).toBe('{"a":12345678901234567891,"b":12.5}')
})

function problems(text: string): string[] {
  try {
    readScenario('s.yaml', text)
    return []
  } catch (error) {
    if (!(error instanceof FilesInvalid)) throw error
    return error.problems.map(({ line, column, message }) => `${line}:${column} ${message}`)
  }
}
