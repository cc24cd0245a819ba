import type { CredentialPart, Credentials } from '../config.ts'

/** What proves who we are and whom we believe, and whether the files it comes from can be used. */
export interface ReloadableCredentials {
  /** The same object until a part changes. */
  now(): Credentials
  /**
   * Reads these parts again and takes into force what can be used.
   *
   * @returns whether something changed
   */
  renew(parts: readonly CredentialPart[]): boolean
  broken(): string | null
}

export interface ReloadableCredentialsDeps {
  credentials: Credentials
  nowMs(): number
  /** @returns text: why it cannot be used */
  read(part: CredentialPart, inForce: Credentials): Partial<Credentials> | string
  holdsAt(cert: string, nowMs: number): boolean
  onRenewed(part: CredentialPart, credentials: Credentials): void
  onBroken(part: CredentialPart, why: string): void
}

export function createReloadableCredentials(deps: ReloadableCredentialsDeps): ReloadableCredentials {
  let { credentials } = deps
  const broken = new Map<CredentialPart, string>()

  function renewPart(part: CredentialPart): boolean {
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

  function readPart(part: CredentialPart): Partial<Credentials> | string {
    const read = deps.read(part, credentials)
    return typeof read === 'string' ? read : (emptied(read) ?? otherClient(read) ?? untimely(read) ?? read)
  }

  /** A variable that is optional counts an empty file as not set. */
  function emptied({ proxy }: Partial<Credentials>): string | null {
    return proxy === null && credentials.proxy !== null ? 'SERVICE_PROXY_FILE is empty' : null
  }

  /** The ledger belongs to one client, whose transactions another may not see. */
  function otherClient({ clientId }: Partial<Credentials>): string | null {
    if (clientId === undefined || clientId === credentials.clientId) return null
    return 'SERVICE_CLIENT_ID is a different client. Stop all daemons, run `outboxd adopt --service --same`, and start them again'
  }

  function untimely({ cert }: Partial<Credentials>): string | null {
    if (typeof cert !== 'string' || credentials.cert === null || cert === credentials.cert) return null
    const nowMs = deps.nowMs()
    if (deps.holdsAt(cert, nowMs) || !deps.holdsAt(credentials.cert, nowMs)) return null
    return 'the certificate in SERVICE_CERT_FILE is not valid now, but the one in use is'
  }

  return {
    now: () => credentials,
    renew: (parts) => parts.map(renewPart).some(Boolean),
    broken: () => (broken.size === 0 ? null : [...broken.values()].join('\n')),
  }
}

const names = (part: Partial<Credentials>) => Object.keys(part) as (keyof Credentials)[]
