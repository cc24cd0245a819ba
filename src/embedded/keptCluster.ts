import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { giveTo, type Program, readMajorVersion } from './postgresServer.ts'
import type { Reaper } from './reaper.ts'

/** A folder in which no data can be kept, and why. */
export class DataFolderUnusable extends Error {
  override name = 'DataFolderUnusable'
  constructor(folder: string, why: string, cause?: unknown) {
    super(`${folder} cannot keep the data: ${why}`, { cause })
  }
}

/** What is in such a folder: a name of our own, so that no other PostgreSQL's data are ever taken for ours. */
const clusterName = 'postgres'
const userName = 'process.pid'
const unfinishedName = 'unfinished-'

/**
 * Finds the cluster in a folder, or makes one there. It is there whole or not at all, also where we are killed meanwhile.
 *
 * @param initialise makes a cluster in the empty folder that it is given
 * @returns the cluster's folder
 * @throws DataFolderUnusable where something else is in the folder, or a cluster of another version, or it cannot be written
 */
export async function openKeptCluster(
  program: Program,
  dataDir: string,
  reaper: Reaper,
  initialise: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = resolve(dataDir)
  const cluster = join(folder, clusterName)
  const unusable = (why: string, cause?: unknown) => new DataFolderUnusable(folder, why, cause)
  await mkdir(folder, { recursive: true }).catch((cause) => {
    throw unusable(`it cannot be made (${cause.message})`, cause)
  })
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch((cause) => {
    if (cause.code === 'ENOENT') return undefined
    throw unusable(`what is there cannot be read (${cause.message}). Name another folder`, cause)
  })
  const majorVersion = await readMajorVersion(program, folder)
  if (version?.trim() === majorVersion) return cluster
  if (version !== undefined)
    throw unusable(
      `they are of PostgreSQL ${version.trim()}, and this outboxd brings ${majorVersion}. Start it with the outboxd that made them, or name another folder`,
    )
  const others = (await readdir(folder)).filter((name) => !name.startsWith(unfinishedName))
  if (others.length > 0)
    throw unusable(
      `it has ${others[0]} in it, which is not of a sandbox. Name a folder that is empty, or not there yet`,
    )
  await giveTo(folder, program.owner) // it has to get into it
  const unfinished = await mkdtemp(join(folder, unfinishedName))
  reaper.addFolder(unfinished)
  await giveTo(unfinished, program.owner)
  await initialise(unfinished).catch((cause) => {
    throw unusable(`no database can be made there (${cause.message})`, cause)
  })
  await chmod(unfinished, 0o700)
  await rename(unfinished, cluster).catch(async (cause) => {
    if (cause.code !== 'ENOTEMPTY' && cause.code !== 'EEXIST') throw cause
    await rm(unfinished, { recursive: true, force: true }) // another sandbox was quicker
  })
  return cluster
}

/** Notes that this process has the folder's data in use. */
export async function writeUser(dataDir: string): Promise<void> {
  await writeFile(join(dataDir, userName), `${process.pid}\n`)
}

/** Who noted it, as in `process 123`; undefined where that process is no more: its server is about to end. */
export async function readUser(dataDir: string): Promise<string | undefined> {
  const pid = Number(await readFile(join(dataDir, userName), 'utf8').catch(() => '0'))
  try {
    return pid > 0 && process.kill(pid, 0) ? `process ${pid}` : undefined
  } catch {
    return undefined
  }
}
