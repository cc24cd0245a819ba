import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkout, type Program, startProgram } from '../../test/support/program.ts'
import type { Patch } from './mutations.ts'

/** A copy of the program from the start of the campaign. Daemons start from it, so that the checkout can be edited meanwhile. */
export interface ProgramCopy extends AsyncDisposable {
  readonly dir: string
  /** Starts the program with its compile cache. */
  start(args: readonly string[], env: Record<string, string>, onLine?: (line: string) => void): Program
}

/** Copies the program and applies patches that break it. @throws Error if a patch does not match */
export async function copyProgram(patches: readonly Patch[]): Promise<ProgramCopy> {
  const dir = await mkdtemp(join(tmpdir(), 'outboxd-crash-'))
  const remove = () => rm(dir, { recursive: true, force: true })
  try {
    for (const part of ['assets', 'bin', 'src', 'migrations', 'mappings', 'package.json'])
      await cp(join(checkout, part), join(dir, part), { recursive: true })
    await cp(join(import.meta.dirname, 'strikeAtStatements.ts'), join(dir, 'strikeAtStatements.ts'))
    for (const patch of patches) await apply(dir, patch)
    await symlink(join(checkout, 'node_modules'), join(dir, 'node_modules'))
    const cache = join(dir, 'cache')
    await mkdir(cache)
    const script = join(dir, 'src', 'main.ts')
    const start: ProgramCopy['start'] = (args, env, onLine = () => {}) =>
      startProgram({ script, args, folder: dir, env: { ...env, NODE_COMPILE_CACHE: cache }, onLine })
    await fillCompileCache(start)
    return { dir, start, [Symbol.asyncDispose]: remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Fills the compile cache. A process writes it at its end, and a killed one never does, so that each start would cost twice. */
async function fillCompileCache(start: ProgramCopy['start']): Promise<void> {
  // Without configuration, the program ends when it has loaded everything.
  await start(['run'], {}).ended()
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
