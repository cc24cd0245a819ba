import { spawnSync } from 'node:child_process'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Node's flags in deploy/outboxd.service and the Dockerfile. */
export const deployedFlags = ['--max-semi-space-size=4'] as const

const root = join(import.meta.dirname, '..', '..', '..')

/** The package as it is installed: compiled JavaScript, so that the daemon does not load the type stripper. */
export interface BuiltPackage extends AsyncDisposable {
  /** Absolute path of its main.js. */
  readonly main: string
}

/** Builds the package into a temporary folder, with this checkout's dependencies. @throws Error with tsc's output */
export async function buildPackage(): Promise<BuiltPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-package-'))
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  const built = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', join(folder, 'dist')], {
    cwd: root,
    encoding: 'utf8',
  })
  if (built.status !== 0) throw new Error(`the package does not build: ${built.stdout}`)
  for (const each of ['assets', 'bin', 'migrations', 'mappings', 'package.json'])
    await cp(join(root, each), join(folder, each), { recursive: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return {
    main: join(folder, 'dist', 'main.js'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}
