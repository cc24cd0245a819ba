import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Node's flags in deploy/outboxd.service and the Dockerfile. */
export const deployedFlags = ['--max-semi-space-size=4'] as const

const root = join(import.meta.dirname, '..', '..', '..')

/** The package as it is installed: a bundle of JavaScript, so that the daemon does not load the type stripper. */
export interface BuiltPackage extends AsyncDisposable {
  /** Absolute path of its main.js. */
  readonly main: string
}

/** Builds the package into a temporary folder. @throws Error with the build's output */
export async function buildPackage(): Promise<BuiltPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-package-'))
  const built = spawnSync(process.execPath, [join(root, '.ci', 'build.ts'), folder], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`the package does not build: ${built.stdout}${built.stderr}`)
  return {
    main: join(folder, 'dist', 'main.js'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}
