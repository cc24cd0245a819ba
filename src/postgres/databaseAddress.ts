/** The address of a database; name and password may be renewed while the daemon runs. */
export interface DatabaseAddress {
  now(): string
  /** Reads the connection string again, because the server refused the sign-in. */
  renew(): void
}

export interface DatabaseAddressDeps {
  url: string
  read(): { url: string } | { problem: string }
  onRenewed(): void
  onRefused(why: string): void
}

export const fixedAddress = (url: string): DatabaseAddress => ({ now: () => url, renew() {} })

/** Renews name and password only: of two databases each daemon would know half of what was sent. */
export function createDatabaseAddress({ url, read, onRenewed, onRefused }: DatabaseAddressDeps): DatabaseAddress {
  let inForce = url
  return {
    now: () => inForce,
    renew() {
      const found = read()
      if ('problem' in found) return onRefused(found.problem)
      if (found.url === inForce) return
      if (withoutName(found.url) !== withoutName(inForce))
        return onRefused('it leads to another database, which a restart alone takes')
      inForce = found.url
      onRenewed()
    },
  }
}

const withoutName = (url: string): string => url.replace(/^postgres(ql)?:\/\/([^@/?#]*@)?/, '')
