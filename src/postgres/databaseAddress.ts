import { errorCodeOf } from './sqlState.ts'

/** A database URL whose user name and password may change while the daemon runs. */
export interface DatabaseAddress {
  now(): string
  /** Reads the URL again, because the server refused the sign-in. */
  renew(): void
}

export interface DatabaseAddressDeps {
  url: string
  read(): { url: string } | { problem: string }
  onRenewed(): void
  onRefused(why: string): void
}

export const createFixedDatabaseAddress = (url: string): DatabaseAddress => ({ now: () => url, renew() {} })

/**
 * Takes over only a new user name and password. A new database is refused, because daemons would then use two ledgers,
 * and neither ledger would have all that was sent.
 */
export function createRenewableDatabaseAddress({
  url,
  read,
  onRenewed,
  onRefused,
}: DatabaseAddressDeps): DatabaseAddress {
  let inUse = url
  return {
    now: () => inUse,
    renew() {
      const found = read()
      if ('problem' in found) return onRefused(found.problem)
      if (found.url === inUse) return
      if (withoutName(found.url) !== withoutName(inUse))
        return onRefused('the new URL names a different database. Only a restart can change the database')
      inUse = found.url
      onRenewed()
    },
  }
}

const withoutName = (url: string): string => url.replace(/^postgres(ql)?:\/\/([^@/?#]*@)?/, '')

/** 28P01 is a wrong password, 28000 an unknown role. Poolers have their own codes. */
export function isSignInRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return /^28/.test(String(errorCodeOf(error))) || /authentication/i.test(error.message)
}
