import { createHash, timingSafeEqual } from 'node:crypto'
import type { ClientSettings } from './sandboxSettings.ts'

export class ClientLookup {
  readonly #clients: readonly ClientSettings[]
  readonly ids: readonly string[]

  constructor(clients: readonly ClientSettings[]) {
    this.#clients = clients
    this.ids = clients.map(({ id }) => id)
  }

  has(id: string): boolean {
    return this.ids.includes(id)
  }

  /** Null if the id or the secret is wrong, after the same time. */
  findAuthenticatedClientId(form: URLSearchParams): string | null {
    let found: string | null = null
    for (const { id, secret } of this.#clients) {
      const isId = areEqualSecrets(form.get('client_id') ?? '', id)
      if (areEqualSecrets(form.get('client_secret') ?? '', secret) && isId) found = id
    }
    return found
  }

  containsSecret(text: string): boolean {
    return this.#clients.some(({ secret }) => text.includes(secret))
  }
}

/** Compares in constant time. */
export function areEqualSecrets(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
