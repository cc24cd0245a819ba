import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mapRecord } from '../../src/mapping/mapRecord.ts'
import { mappingFrom } from './mappingOf.ts'

// In docs/start/mapping.md a ```yaml block is a mapping; the ```json blocks after it are a payload and its request.
const page = readFileSync('docs/start/mapping.md', 'utf8')
const blocks = [...page.matchAll(/^```(yaml|json)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }))
const examples = blocks.flatMap(({ language, text = '' }, i) =>
  language === 'yaml'
    ? [{ mapping: text, payload: blocks[i + 1]?.text ?? '', request: blocks[i + 2]?.text ?? '' }]
    : [],
)

test.each(examples)('docs/start/mapping.md, example $#: the payload becomes the request shown', ({
  mapping,
  payload,
  request,
}) => {
  const mapped = mapRecord(mappingFrom(mapping), payload, '7d1c0c52-8f0e-4c57-9d0b-0a3f5e1f7a11')
  expect(mapped).toMatchObject({ kind: 'mapped', body: request.replaceAll(/\s*\n\s*|(?<=[{,:[]) | (?=[}\]])/g, '') })
})

test('the page has examples', () => {
  expect(examples.length).toBeGreaterThan(1)
})
