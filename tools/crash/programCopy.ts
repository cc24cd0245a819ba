import { execFileSync } from 'node:child_process'
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

/** Version 0.1.0. */
const commitOf010 = '2f42af5dc39dbed5520e22280af8aa7ccc97f94c'

/** Copies the program and applies patches that break it. @throws Error if a patch does not match */
export function copyProgram(patches: readonly Patch[]): Promise<ProgramCopy> {
  return copyInto(async (dir) => {
    for (const part of ['assets', 'bin', 'src', 'migrations', 'mappings', 'package.json'])
      await cp(join(checkout, part), join(dir, part), { recursive: true })
    for (const patch of patches) await apply(dir, patch)
  })
}

/** Copies the program of version 0.1.0, which runs with today's packages. @throws Error if the repository does not have it */
export function copyVersion010(): Promise<ProgramCopy> {
  return copyInto(async (dir) => {
    try {
      const archive = execFileSync('git', ['archive', commitOf010, 'src', 'migrations', 'mappings', 'package.json'], {
        cwd: checkout,
        maxBuffer: 1e9,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      execFileSync('tar', ['-x', '-C', dir], { input: archive })
    } catch (cause) {
      throw new Error(`version 0.1.0 is not here: it takes a git repository that has ${commitOf010}`, { cause })
    }
  })
}

async function copyInto(fill: (dir: string) => Promise<void>): Promise<ProgramCopy> {
  const dir = await mkdtemp(join(tmpdir(), 'outboxd-crash-'))
  const remove = () => rm(dir, { recursive: true, force: true })
  try {
    await fill(dir)
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
