import { createHmac, randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../clock.ts'
import { BoundedMap } from '../bounds.ts'
import type { PasswordHash } from './passwordHash.ts'
import { isSameToken } from './viewer.ts'

const sessionMs = 12 * 3_600_000

const sessionsMax = 1_000

export type SessionStore = ReturnType<typeof createSessionStore>

export function createSessionStore(clock: Pick<Clock, 'stopwatch'>) {
  const sessions = new BoundedMap<string, { name: string; ageMs: () => number }>(sessionsMax)
  return {
    begin(name: string): string {
      const id = randomBytes(24).toString('base64url')
      sessions.set(id, { name, ageMs: clock.stopwatch() })
      return id
    },
    nameOf(id: string): string | null {
      const session = sessions.get(id)
      if (session === undefined) return null
      if (session.ageMs() < sessionMs) return session.name
      sessions.delete(id)
      return null
    },
    end: (id: string): void => void sessions.delete(id),
  }
}

/** Browsers send a host's cookies to all its ports, so the cookie's name contains the port. */
const cookieName = ({ socket }: FastifyRequest) => `outboxd_console_${socket.localPort ?? 0}`

/** Returns the session's id; '' without a cookie, or if another process signed the cookie. */
export function sessionIdOf(request: FastifyRequest): string {
  const { valid, value } = request.unsignCookie(request.cookies[cookieName(request)] ?? '')
  return valid ? value : ''
}

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

/** Signs with the password hash, so that the cookie outlives the process and ends with the password. */
const deviceTag = (device: string, { tag }: PasswordHash) =>
  createHmac('sha256', tag).update(`device ${device}`).digest('base64url')

export function readDeviceCookie(request: FastifyRequest, hash: PasswordHash): string | null {
  const [device = '', tag = ''] = (request.cookies[deviceName(request)] ?? '').split('.', 2)
  return device !== '' && isSameToken(tag, deviceTag(device, hash)) ? device : null
}

/** Marks a browser that signed in, so that it has its own password tries (login.ts). */
export function setDeviceCookie(request: FastifyRequest, reply: FastifyReply, hash: PasswordHash): void {
  const device = readDeviceCookie(request, hash) ?? randomBytes(18).toString('base64url')
  const value = `${device}.${deviceTag(device, hash)}`
  reply.setCookie(deviceName(request), value, { ...strict(request), maxAge: deviceCookieS })
}
