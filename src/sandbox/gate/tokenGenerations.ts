import { createHmac } from 'node:crypto'

/** Of each client that ever was: the generation of its tokens, and what its credentials were known by; null: it is gone. */
export type TokenGenerations = Record<string, { generation: number; fingerprint: string | null }>

export interface ClientKeys {
  id: string
  secret: string
}

/**
 * The generations at a start: one that is new stays valid as long as its credentials do. A client that comes back, or comes with
 * another secret, begins the next, so that no token of before is good again.
 *
 * @param first for clients not seen before
 * @param key   makes the fingerprint one that says nothing of the secret
 */
export function generationsNow(
  kept: TokenGenerations,
  clients: readonly ClientKeys[],
  first: number,
  key: string,
): TokenGenerations {
  const gone = Object.entries(kept).map(([id, { generation }]) => [id, { generation, fingerprint: null }] as const)
  const here = clients.map(({ id, secret }) => {
    const fingerprint = createHmac('sha256', key)
      .update(JSON.stringify([id, secret]))
      .digest('base64url')
    const before = kept[id]
    if (before === undefined) return [id, { generation: first, fingerprint }] as const
    return [id, { generation: before.generation + (before.fingerprint === fingerprint ? 0 : 1), fingerprint }] as const
  })
  return Object.fromEntries([...gone, ...here])
}
