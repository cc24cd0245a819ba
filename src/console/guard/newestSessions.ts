import type { SessionStore } from '@fastify/session'
import type { Session } from 'fastify'
import { BoundedMap } from '../bounds.ts'

const sessionsMax = 1_000

/**
 * Keeps the newest sessions, and of each only what the next request needs. The plugin's own store keeps all that were not
 * signed out, each with the request that signed it in, and so with the password.
 */
export class NewestSessions implements SessionStore {
  readonly #sessions = new BoundedMap<string, Pick<Session, 'name' | 'cookie'>>(sessionsMax)

  set(id: string, { name, cookie }: Session, done: (error?: unknown) => void): void {
    this.#sessions.set(id, { ...(name !== undefined && { name }), cookie: JSON.parse(JSON.stringify(cookie)) })
    done()
  }

  get(id: string, done: (error: unknown, session?: Session | null) => void): void {
    done(null, (this.#sessions.get(id) ?? null) as Session | null)
  }

  destroy(id: string, done: (error?: unknown) => void): void {
    this.#sessions.delete(id)
    done()
  }
}
