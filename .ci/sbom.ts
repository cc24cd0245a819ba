import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { readLock, readShipped } from './licenses.ts'

/**
 * `npm run sbom` prints npm's list of the shipped packages in CycloneDX. npm 11's `--omit dev` also leaves out each
 * shipped package that a developer's tool needs as well, such as yaml. So npm lists all packages, and we remove those
 * not shipped.
 */
interface Component {
  'bom-ref': string
  name: string
  version: string
}

interface Bom {
  metadata: { component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

const root = join(import.meta.dirname, '..')
const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
const all: Bom = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 100_000_000 }))

const shipped = new Set(readShipped(readLock()).map(({ name, version }) => `${name} ${version}`))
const components = all.components.filter(({ name, version }) => shipped.has(`${name} ${version}`))
const refs = new Set([all.metadata.component, ...components].map((component) => component['bom-ref']))
const dependencies = all.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }))
// npm names the component after its folder. Without time and number, two runs give the same text.
const metadata = { ...all.metadata, timestamp: undefined, component: { ...all.metadata.component, name: 'outboxd' } }
const bom = { ...all, serialNumber: undefined, metadata, components, dependencies }
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`)
