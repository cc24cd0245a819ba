import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from '../support/program.ts'
import type { Patch } from './mutations.ts'

const checkout = join(import.meta.dirname, '..', '..')

/** The program as it stood when the campaign began: daemons start from it by the hundred while the checkout is edited. */
export interface ProgramCopy extends AsyncDisposable {
  readonly dir: string
  /** src/main.ts of the copy. */
  readonly main: string
}

/** Copies the program, and breaks the copy where patches say so. @throws Error where a patch finds nothing to break */
export async function copyProgram(patches: readonly Patch[]): Promise<ProgramCopy> {
  const dir = await mkdtemp(join(tmpdir(), 'outboxd-crash-'))
  for (const part of ['assets', 'bin', 'src', 'migrations', 'mappings', 'package.json'])
    await cp(join(checkout, part), join(dir, part), { recursive: true })
  await symlink(join(checkout, 'node_modules'), join(dir, 'node_modules'))
  await mkdir(join(dir, 'cache'))
  for (const patch of patches) await apply(dir, patch)
  const main = join(dir, 'src', 'main.ts')
  await fillCompileCache(main, `${dir}/cache`)
  return {
    dir,
    main,
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

/** A process writes what it compiled when it leaves, which those that are killed never do: each start would cost twice. */
async function fillCompileCache(script: string, cache: string): Promise<void> {
  // Without configuration it leaves when it has loaded everything.
  await startProgram({ script, args: ['run'], env: { NODE_COMPILE_CACHE: cache } }).ended()
}

async function apply(dir: string, { file, from, to }: Patch): Promise<void> {
  const path = join(dir, file)
  const text = await readFile(path, 'utf8')
  if (text.split(from).length !== 2)
    throw new Error(`the mutation does not fit any more: ${file} must hold exactly once\n${from}`)
  await writeFile(
    path,
    text.replace(from, () => to),
  )
}
