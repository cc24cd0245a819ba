import { expect, test } from 'vitest'
import { optionsSchema } from '../../src/sandbox/sandboxSettings.ts'
import { alternatives, type NotShown } from '../support/serviceAlternatives.ts'
import { randomService } from './randomService.ts'

const services = Array.from({ length: 500 }, (_, seed) => randomService(seed))

test('a seed makes the same service each time, and a different seed a different service', () => {
  expect(randomService(7)).toEqual(randomService(7))
  expect(randomService(8).options).not.toEqual(randomService(7).options)
})

test('the options of each random service are valid for the sandbox', () => {
  for (const { options } of services) {
    expect(() => optionsSchema.parse({ databaseUrl: 'postgres://none', port: 0, ...options })).not.toThrow()
  }
})

test('within 500 services each alternative is drawn, except answers that no client can read', () => {
  const missing = (Object.keys(alternatives) as (keyof NotShown)[]).flatMap((name) => {
    const seen = new Set(services.map(({ notShown }) => JSON.stringify(notShown[name])))
    return alternatives[name]
      .map((each) => JSON.stringify(each))
      .filter((each) => !seen.has(each))
      .map((each) => `${name} ${each}`)
  })
  expect(missing).toEqual(['compression "always"'])
})

test('the alternatives of each setting contain its default', () => {
  const usual = optionsSchema.parse({ databaseUrl: 'postgres://none' })
  for (const [name, each] of Object.entries(alternatives)) {
    expect(
      each.map((value) => JSON.stringify(value)),
      name,
    ).toContain(JSON.stringify(usual[name as keyof NotShown]))
  }
})
