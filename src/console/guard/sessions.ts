import { createHmac, randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../clock.ts'
import type { PasswordHash } from './passwordHash.ts'
import { isSameToken } from './viewer.ts'

/** A working day; then the password is asked for again. */
export const sessionMs = 12 * 3_600_000

/** The oldest goes when one more comes. */
const sessionsMax = 1_000

/** Who has signed in, in this process's memory: another start, or another instance, knows none of them. */
export interface Sessions {
  /** @returns the session's id, for its cookie */
  begin(name: string): string
  /** The name that was given at the beginning; null where it is none of ours, or over. */
  nameOf(id: string): string | null
  end(id: string): void
}

export function createSessions(clock: Clock): Sessions {
  const sessions = new Map<string, { name: string; ageMs: () => number }>()
  return {
    begin(name) {
      const id = randomBytes(24).toString('base64url')
      sessions.set(id, { name, ageMs: clock.stopwatch() })
      const [oldest] = sessions.keys()
      if (sessions.size > sessionsMax && oldest !== undefined) sessions.delete(oldest)
      return id
    },
    nameOf(id) {
      const session = sessions.get(id)
      if (session === undefined) return null
      if (session.ageMs() < sessionMs) return session.name
      sessions.delete(id)
      return null
    },
    end: (id) => void sessions.delete(id),
  }
}

/** Cookies of a host are sent to all its ports, so each port's has a name of its own. */
const cookieName = ({ socket }: FastifyRequest) => `outboxd_console_${socket.localPort ?? 0}`

/** The session that a request's cookie names; '' where there is none, or it was signed by another start or instance. */
export function sessionIdOf(request: FastifyRequest): string {
  const { valid, value } = request.unsignCookie(request.cookies[cookieName(request)] ?? '')
  return valid ? value : ''
}

/** Gives it to the browser, for us alone, and never for a request that another site's page makes. */
export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, id: string): void {
  reply.setCookie(cookieName(request), id, { ...strict(request), signed: true, maxAge: sessionMs / 1_000 })
}

const strict = ({ protocol }: FastifyRequest) =>
  ({ path: '/', httpOnly: true, sameSite: 'strict', secure: protocol === 'https' }) as const

export function clearSessionCookie(request: FastifyRequest, reply: FastifyReply): void {
  reply.clearCookie(cookieName(request), { path: '/' })
}

const deviceCookieS = 180 * 86_400
const deviceName = ({ socket }: FastifyRequest) => `outboxd_console_device_${socket.localPort ?? 0}`

/** Signed by the password's hash: it outlives the console, and ends with the password. */
const deviceTag = (device: string, { tag }: PasswordHash) =>
  createHmac('sha256', tag).update(`device ${device}`).digest('base64url')

/** The browser that asks, if it has signed in with this password before; else null. */
export function deviceOf(request: FastifyRequest, hash: PasswordHash): string | null {
  const [device = '', tag = ''] = (request.cookies[deviceName(request)] ?? '').split('.', 2)
  return device !== '' && isSameToken(tag, deviceTag(device, hash)) ? device : null
}

/** Marks the browser as one that has signed in. The mark gives it tries of a password of its own, and opens nothing. */
export function setDeviceCookie(request: FastifyRequest, reply: FastifyReply, hash: PasswordHash): void {
  const device = deviceOf(request, hash) ?? randomBytes(18).toString('base64url')
  const value = `${device}.${deviceTag(device, hash)}`
  reply.setCookie(deviceName(request), value, { ...strict(request), maxAge: deviceCookieS })
}
