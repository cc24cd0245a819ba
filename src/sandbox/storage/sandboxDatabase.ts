import { startPrivatePostgres } from '../../embedded/privatePostgres.ts'
import type { SandboxSettings } from '../sandboxSettings.ts'

/** The database with all that a sandbox knows. */
export interface SandboxDatabase {
  readonly url: string
  /** Resolves with what happened when a server of our own ends again and again; never for another's. */
  readonly failed: Promise<string>
  /** Ends the server where it is our own. */
  close(): Promise<void>
}

/** @throws DataFolderUnusable, or Error where no server of our own can be started */
export async function openDatabase(settings: Place): Promise<SandboxDatabase> {
  const { databaseUrl, dataDir } = settings
  if (databaseUrl !== undefined && !isEmbedded(settings)) {
    return { url: databaseUrl, failed: new Promise(() => {}), async close() {} }
  }
  const server = await startPrivatePostgres((words) => process.stderr.write(`sandbox: ${words}\n`), dataDir)
  return { url: server.url, failed: server.failed, close: server.stop }
}

/** Whether it brings its own server: asked for, that goes before a database which the environment names. */
export function isEmbedded({ embedded, dataDir }: Place): boolean {
  return embedded || dataDir !== undefined
}

type Place = Pick<SandboxSettings, 'databaseUrl' | 'embedded' | 'dataDir'>
