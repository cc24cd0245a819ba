import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isPermissive, readLock, readShipped, renderLicenses } from '../.ci/licenses.ts'
import { checkout } from './support/program.ts'

const shipped = readShipped(readLock())

test('every shipped package has a licence that does not require its users to publish source', () => {
  expect(shipped.length).toBeGreaterThan(50)
  expect(shipped.filter(({ license }) => !isPermissive(license))).toEqual([])
})

test.each([
  'GPL-3.0-only',
  'AGPL-3.0',
  'LGPL-2.1',
  'MPL-2.0',
  'unknown',
  'SEE LICENSE IN x',
  'MIT AND GPL-2.0',
  'BUSL-1.1',
])('%s is reported', (license) => {
  const [found] = readShipped({ packages: { 'node_modules/x': { version: '1.0.0', license } } })
  expect(isPermissive(found?.license ?? '')).toBe(false)
})

test.each(['MIT', '(MIT OR GPL-3.0)', '(MIT OR CC0-1.0)', 'MIT AND ISC'])('%s is allowed', (license) => {
  expect(isPermissive(license)).toBe(true)
})

test('a package without a licence is unknown, and packages for development are left out', () => {
  const packages = { '': {}, 'node_modules/a/node_modules/@x/b': { version: '1' }, 'node_modules/c': { dev: true } }
  expect(readShipped({ packages })).toEqual([{ name: '@x/b', version: '1', license: 'unknown', isOptional: false }])
})

test('deploy/licenses.md is what npm run licenses prints', () => {
  const page = readFileSync(join(checkout, 'deploy', 'licenses.md'), 'utf8')
  expect(page, 'npm run --silent licenses > deploy/licenses.md').toBe(renderLicenses(shipped))
})

test('npm run sbom prints CycloneDX with exactly the shipped packages', () => {
  const printed = execFileSync('npm', ['run', '--silent', 'sbom'], { cwd: checkout, encoding: 'utf8', maxBuffer: 1e8 })
  const { bomFormat, components } = JSON.parse(printed)
  const names = (components as { name: string; version: string }[]).map(({ name, version }) => `${name} ${version}`)
  expect(bomFormat).toBe('CycloneDX')
  expect(new Set(names)).toEqual(new Set(shipped.map(({ name, version }) => `${name} ${version}`)))
})
