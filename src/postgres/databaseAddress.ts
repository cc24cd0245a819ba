/** The address of a database, with the name and the password by which we sign in; both may be renewed while the daemon runs. */
export interface DatabaseAddress {
  /** The connection string in force. */
  now(): string
  /** No connection came about with it: reads what it comes from again. */
  renew(): void
}

export interface DatabaseAddressDeps {
  url: string
  /** @returns the connection string, or in words what keeps it from being read */
  read(): { url: string } | { problem: string }
  onRenewed(): void
  /** It is not taken; that before stays in force. */
  onRefused(why: string): void
}

/** One that stays. */
export const fixedAddress = (url: string): DatabaseAddress => ({ now: () => url, renew() {} })

/**
 * One whose name and password may be renewed, and nothing else: of two databases each daemon would know but half of what was
 * sent.
 */
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
