import { createHash, timingSafeEqual } from 'node:crypto'
import type { ClientSettings } from './sandboxSettings.ts'

export type ClientLookup = ReturnType<typeof createClientLookup>

export function createClientLookup(clients: readonly ClientSettings[]) {
  return {
    ids: clients.map(({ id }) => id),
    has: (id: string) => clients.some((client) => client.id === id),
    /** Null if the id or the secret is wrong, after the same time. */
    findAuthenticatedClientId(form: URLSearchParams): string | null {
      let found: string | null = null
      for (const { id, secret } of clients) {
        const isId = areEqualSecrets(form.get('client_id') ?? '', id)
        if (areEqualSecrets(form.get('client_secret') ?? '', secret) && isId) found = id
      }
      return found
    },
    containsSecret: (text: string) => clients.some(({ secret }) => text.includes(secret)),
  }
}

/** Compares in constant time. */
export function areEqualSecrets(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
