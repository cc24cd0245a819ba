import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore, { type RulesetDefinition } from '@stoplight/spectral-core'
import spectralRulesets from '@stoplight/spectral-rulesets'
import { expect, test } from 'vitest'
import { buildOpenApiDocument } from '../../tools/docs/openApiDocument.ts'

const document = (): Record<string, unknown> => JSON.parse(JSON.stringify(buildOpenApiDocument()))
const withoutTags = () => ({ ...document(), tags: [], info: { title: 'no license', version: '1' } })

async function redocly(described: unknown): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const found = await lintFromString({ source: JSON.stringify(described), absoluteRef: '/openapi.json', config })
  return found.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`)
}

async function spectral(described: Record<string, unknown>): Promise<string[]> {
  const linter = new spectralCore.Spectral()
  linter.setRuleset({ extends: [spectralRulesets.oas as RulesetDefinition] })
  const found = await linter.run(described)
  return found.map(({ code, message, path }) => `${code}: ${message} (${path.join('.')})`)
}

test('redocly finds no problem in the OpenAPI document', async () => {
  expect(await redocly(document())).toEqual([])
  expect((await redocly(withoutTags())).join()).toContain('info-license')
})

test('spectral finds no problem in the OpenAPI document', async () => {
  expect(await spectral(document())).toEqual([])
  expect((await spectral(withoutTags())).join()).toContain('info-contact')
})
