import { execFileSync } from 'node:child_process'
import { cp, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { type OutputChunk, rolldown } from 'rolldown'
import { printSandboxTypes } from './sandboxTypes.ts'

/**
 * `npm run build` makes the package in build/outboxd. The program is a bundle: it has all that it needs of other
 * packages, and their licences.
 *
 * Usage: node .ci/build.ts [FOLDER]
 */
const root = join(import.meta.dirname, '..')
const target = resolve(process.argv[2] ?? join(root, 'build', 'outboxd'))
const copied = ['bin', 'mappings', 'migrations', 'assets', 'deploy', 'docs', 'LICENSE', 'README.md', 'CHANGELOG.md']
/** Files of the site, not of its pages, and pictures, because a host shows the pages as text. */
const isOfSite = /^docs\/(\.vitepress|node_modules|package(-lock)?\.json|index\.md|pictures)/

await rm(target, { recursive: true, force: true })
await mkdir(target, { recursive: true })
for (const path of copied)
  await cp(join(root, path), join(target, path), {
    recursive: true,
    filter: (source) => !isOfSite.test(relative(root, source)),
  })
await writePackageJson()
await writeLicenses(await bundle())
const sbom = execFileSync(process.execPath, [join(root, '.ci', 'sbom.ts')], { maxBuffer: 100_000_000 })
await writeFile(join(target, 'sbom.json'), sbom)
await writeTypes()

/** @returns the files of other packages that the bundle has */
async function bundle(): Promise<Set<string>> {
  const build = await rolldown({
    cwd: root,
    platform: 'node',
    input: {
      main: 'src/main.ts',
      sandbox: 'src/sandbox/sandbox.ts',
      reaperProcess: 'src/embedded/reaperProcess.ts',
    },
    external: ['pg-native'],
    transform: { target: 'node22' },
  })
  // All files in one folder, because `src/packageFolder.ts` and others find files beside themselves.
  const { output } = await build.write({
    dir: join(target, 'dist'),
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
  await build.close()
  const modules = output
    .filter((file): file is OutputChunk => file.type === 'chunk')
    .flatMap((chunk) => chunk.moduleIds)
  return new Set(modules.filter((id) => id.includes('/node_modules/')))
}

async function writePackageJson(): Promise<void> {
  const { name, version, description, license, type, engines, bin, exports } = JSON.parse(
    await readFile(join(root, 'package.json'), 'utf8'),
  )
  const published = { name, version, description, license, type, engines, bin, exports }
  await writeFile(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
}

async function writeLicenses(modules: ReadonlySet<string>): Promise<void> {
  const folders = new Set([...modules].map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? ''))
  const texts: string[] = []
  for (const folder of [...folders].toSorted()) {
    const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const [file] = await Array.fromAsync(glob('{LICENSE,LICENCE,license,licence}*', { cwd: folder }))
    const text = file === undefined ? `(${license})\n` : await readFile(join(folder, file), 'utf8')
    texts.push(`${name} ${version}\n\n${text.trim()}\n`)
  }
  await writeFile(join(target, 'licenses.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`))
}

/** The types of `outboxd/sandbox`. */
async function writeTypes(): Promise<void> {
  const types = join(target, 'dist', 'types')
  const all = join(target, 'build')
  execFileSync(join(root, 'node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.types.json', '--outDir', all], { cwd: root })
  for (const file of ['sandbox.d.ts', 'startSandbox.d.ts', 'settingsWrong.d.ts'])
    await cp(join(all, 'sandbox', file), join(types, file))
  await mkdir(join(types, 'scenario'))
  await writeFile(join(types, 'scenario', 'scenarioSchema.d.ts'), printSandboxTypes())
  await rm(all, { recursive: true })
}
