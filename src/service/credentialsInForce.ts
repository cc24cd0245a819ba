import type { CredentialPart, Credentials } from '../config.ts'

/** What proves who we are, and whom we believe: those in force, and how the files are that they come from. */
export interface CredentialsInForce {
  /** Those in force: the same object until one of them is another. */
  now(): Credentials
  /**
   * Reads what these parts come from again, and takes into force what can be used; of what cannot be used that before stays.
   *
   * @returns whether another is in force
   */
  renew(parts: readonly CredentialPart[]): boolean
  /** What keeps the files from being used as they lie there, a line each; null if nothing does. */
  broken(): string | null
}

export interface CredentialsInForceDeps {
  credentials: Credentials
  nowMs(): number
  /** Reads one part, as `readCredentials`. @returns in words what keeps it from being used, where something does */
  read(part: CredentialPart, inForce: Credentials): Partial<Credentials> | string
  /** Whether the certificate of a PEM text holds at that time. */
  holdsAt(cert: string, nowMs: number): boolean
  onRenewed(part: CredentialPart, credentials: Credentials): void
  /** A part cannot be used as its files are, which it could before; that before stays in force. */
  onBroken(part: CredentialPart, why: string): void
}

export function createCredentialsInForce(deps: CredentialsInForceDeps): CredentialsInForce {
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

  /** One that need not be set has an empty file for not set: but it was. */
  function emptied({ proxy }: Partial<Credentials>): string | null {
    return proxy === null && credentials.proxy !== null ? 'SERVICE_PROXY_FILE is empty' : null
  }

  /** The ledger belongs to one client, whose transactions another one may not see. */
  function otherClient({ clientId }: Partial<Credentials>): string | null {
    if (clientId === undefined || clientId === credentials.clientId) return null
    return 'SERVICE_CLIENT_ID is a different client: stop all daemons, give outboxd adopt --service --same, and start them again'
  }

  function untimely({ cert }: Partial<Credentials>): string | null {
    if (typeof cert !== 'string' || credentials.cert === null || cert === credentials.cert) return null
    const nowMs = deps.nowMs()
    if (deps.holdsAt(cert, nowMs) || !deps.holdsAt(credentials.cert, nowMs)) return null
    return 'the certificate in SERVICE_CERT_FILE is not valid now, and the one in force is'
  }

  return {
    now: () => credentials,
    renew: (parts) => parts.map(renewPart).some(Boolean),
    broken: () => (broken.size === 0 ? null : [...broken.values()].join('\n')),
  }
}

const names = (part: Partial<Credentials>) => Object.keys(part) as (keyof Credentials)[]
