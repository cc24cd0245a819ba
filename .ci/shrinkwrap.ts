import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Writes npm-shrinkwrap.json for the package: package-lock.json without the packages for developers. So an installation
 * of the package gets the versions that the tests ran with. `npm pack` calls it.
 */
interface Lock {
  packages: Record<string, { dev?: boolean; devDependencies?: unknown }>
}

const lock: Lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const { devDependencies: _, ...root } = lock.packages[''] ?? {}
const installed = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && !dev)
const packages = { '': root, ...Object.fromEntries(installed) }
writeFileSync('npm-shrinkwrap.json', `${JSON.stringify({ ...lock, packages }, null, 2)}\n`)
