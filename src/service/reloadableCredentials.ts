import type { CredentialKind, LiveSettings } from '../config.ts'

export interface ReloadableCredentialsDeps {
  credentials: LiveSettings
  /** @returns the part, or a text that says why it cannot be used */
  read(part: CredentialKind): Partial<LiveSettings> | string
  onRenewed(part: CredentialKind, credentials: LiveSettings): void
  onBroken(part: CredentialKind, why: string): void
}

export interface ReloadableCredentials {
  /** Returns the same object until a credential changes. */
  now(): LiveSettings
  /** Reads these parts again and uses the valid ones. @returns true if something changed */
  renew(parts: readonly CredentialKind[]): boolean
  /** Why parts could not be renewed; null if none is broken. */
  broken(): string | null
}

/** Keeps the former credentials if a file cannot be used. */
export function createReloadableCredentials(deps: ReloadableCredentialsDeps): ReloadableCredentials {
  let { credentials } = deps
  const broken = new Map<CredentialKind, string>()

  function renewPart(part: CredentialKind): boolean {
    const read = readPart(part)
    if (typeof read === 'string') {
      const isNews = broken.get(part) !== read
      broken.set(part, read)
      if (isNews) deps.onBroken(part, read)
      return false
    }
    broken.delete(part)
    if (names(read).every((name) => read[name] === credentials[name])) return false
    credentials = { ...credentials, ...read }
    deps.onRenewed(part, credentials)
    return true
  }

  function readPart(part: CredentialKind): Partial<LiveSettings> | string {
    const read = deps.read(part)
    return typeof read === 'string' ? read : (emptied(read) ?? otherClient(read) ?? otherDatabase(read) ?? read)
  }

  /** An empty file counts as not set, so `proxy` is null. */
  function emptied({ proxy }: Partial<LiveSettings>): string | null {
    return proxy === null && credentials.proxy !== null ? 'SERVICE_PROXY_FILE is empty' : null
  }

  /** Refuses a different client, which may not see the transactions of the client to which the ledger belongs. */
  function otherClient({ clientId }: Partial<LiveSettings>): string | null {
    if (clientId === undefined || clientId === credentials.clientId) return null
    return 'SERVICE_CLIENT_ID names a different client, so the former client stays in use. To change the client, stop all daemons, run `outboxd adopt --same`, and start them again'
  }

  /** Refuses a different database, because daemons would then use two ledgers. Only name and password may change. */
  function otherDatabase({ databaseUrl }: Partial<LiveSettings>): string | null {
    if (databaseUrl === undefined || withoutSignIn(databaseUrl) === withoutSignIn(credentials.databaseUrl)) return null
    return 'DATABASE_URL names a different database. Only a restart can change the database'
  }

  return {
    now: () => credentials,
    renew: (parts) => parts.map(renewPart).some(Boolean),
    broken: () => (broken.size === 0 ? null : [...broken.values()].join('\n')),
  }
}

const names = (part: Partial<LiveSettings>) => Object.keys(part) as (keyof LiveSettings)[]
const withoutSignIn = (url: string) =>
  url.replace(/^postgres(ql)?:\/\/([^@/?#]*@)?/, '').replace(/[?&](user|password)=[^&#]*/g, '')
