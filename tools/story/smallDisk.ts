import { spawnSync } from 'node:child_process'
import { chown, mkdtemp, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A disk of a few megabytes in memory, which a test can fill. */
export interface SmallDisk extends AsyncDisposable {
  /** The disk's root folder, which PostgreSQL owns. */
  readonly folder: string
  fill(): void
}

/** Enough for some minutes of a ledger. */
const megabytes = 96

/** The account that runs PostgreSQL if we are root. */
const nobody = 65534

/** @returns the reason why this machine cannot mount such a disk; null if it can */
export const explainMissingSmallDisk = (): string | null =>
  process.getuid?.() === 0 && process.platform === 'linux' ? null : 'a disk that can be filled needs root, on Linux'

/** @throws Error if the disk cannot be mounted */
export async function mountSmallDisk(): Promise<SmallDisk> {
  const folder = await mkdtemp(join(tmpdir(), 'story-disk-'))
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder)
  await chown(folder, nobody, nobody)
  return {
    folder,
    fill: () => void spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'filler')}`, 'bs=64k']),
    async [Symbol.asyncDispose]() {
      run('umount', '--lazy', folder)
      await rmdir(folder)
    },
  }
}

function run(program: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`)
}
