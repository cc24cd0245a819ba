import { randomBytes } from 'node:crypto'
import cookie from '@fastify/cookie'
import rateLimit from '@fastify/rate-limit'
import session, { type SessionStore } from '@fastify/session'
import type { FastifyInstance, FastifyReply, FastifyRequest, Session } from 'fastify'
import { normalizePersonName } from '../../operations/actor.ts'
import { BoundedMap } from '../bounds.ts'
import { notice } from '../html/elements.ts'
import { fieldTextAsTyped, formHtml, hiddenField } from '../html/form.ts'
import { html } from '../html/html.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { isPasswordCorrect, type PasswordHash } from './passwordHash.ts'

const formMaxBytes = 8_192
const passwordCharsMax = 1_000
const sessionMs = 12 * 3_600_000

/** Adds the sign-in page and its sessions, which end with the process. */
export async function installSignIn(app: FastifyInstance, hash: PasswordHash, { say }: ConsoleParts): Promise<void> {
  await app.register(cookie)
  await app.register(session, {
    secret: randomBytes(32).toString('base64'),
    // Browsers send a host's cookies to all its ports, where another console may listen.
    cookieName: `outboxd_console_${randomBytes(4).toString('hex')}`,
    // Lax: a link of another site opens a page, and a form of another site comes without the cookie.
    cookie: { httpOnly: true, sameSite: 'lax', secure: 'auto', maxAge: sessionMs },
    saveUninitialized: false,
    store: new NewestSessions(),
    rolling: false,
  })
  await app.register(rateLimit, { global: false })
  const secondsToWait = createTryLimit(app)
  const open = { needsNoViewer: true, changesNothing: true } as const

  app.get('/login', { config: open }, ({ session }, reply) =>
    session.name === undefined ? sendForm(reply, { to: '/' }) : reply.redirect('/', 303),
  )
  app.post('/login', { config: open, bodyLimit: formMaxBytes }, async (request, reply) => {
    const { ip, body } = request
    const [to, password] = [ownPath(fieldTextAsTyped(body, 'to')), fieldTextAsTyped(body, 'password')]
    const name = normalizePersonName(fieldTextAsTyped(body, 'name'))
    const again = (status: number, says: string) => sendForm(reply.code(status), { to, says, name: name ?? '' })
    if (name === null) return again(400, 'Give your name: the event log keeps it with your changes.')
    const seconds = await secondsToWait(request)
    if (seconds > 0) {
      reply.header('retry-after', seconds)
      return again(429, `Too many tries. Try again in ${seconds} s.`)
    }
    if (password.length > passwordCharsMax || !(await isPasswordCorrect(password, hash))) {
      say(`the console was given a wrong password from ${ip}`)
      return again(401, 'Wrong password.')
    }
    await request.session.regenerate()
    request.session.name = name
    say(`operator ${name} signed in to the console from ${ip}`)
    return reply.redirect(to, 303)
  })
  app.post('/logout', { config: { changesNothing: true } }, async (request, reply) => {
    await request.session.destroy()
    return reply.redirect('/login', 303)
  })
}

/**
 * Bounds tries per address, whose IPv6 nets count as one, and of all addresses. A try counts before its password is
 * judged, so that tries at once do not get around it.
 *
 * @returns a function that counts a try and returns 0, or returns how many seconds to wait
 */
function createTryLimit(app: FastifyInstance): (request: FastifyRequest) => Promise<number> {
  const timeWindow = 60_000
  const address = app.createRateLimit({ max: 5, timeWindow })
  const all = app.createRateLimit({ max: 30, timeWindow, keyGenerator: () => '' })
  return async (request) => {
    for (const limit of [address, all]) {
      const tried = await limit(request)
      if (!tried.isAllowed && tried.isExceeded) return tried.ttlInSeconds
    }
    return 0
  }
}

export function sendSignInPage({ method, url }: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (method === 'GET') return sendForm(reply.code(401), { to: ownPath(url) })
  return sendForm(reply.code(401), { to: '/', says: 'You are no longer signed in. Nothing was changed.' })
}

function ownPath(text: string): string {
  const base = 'http://console.invalid'
  if (!text.startsWith('/') || !URL.canParse(text, base)) return '/'
  const { origin, pathname, search } = new URL(text, base)
  // URL turns `/.//x` into `//x`, which is another site's address.
  const isOurs = origin === base && pathname !== '/login' && !pathname.startsWith('//')
  return isOurs ? `${pathname}${search}` : '/'
}

function sendForm(reply: FastifyReply, form: { to: string; name?: string; says?: string }): FastifyReply {
  const { to, name, says } = form
  const fields = html`${hiddenField('to', to)}
<label>Your name <input name="name" value="${name}" autocomplete="username" required maxlength="100"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button class="main">sign in</button>`
  return sendPage(reply, { title: 'Sign in' }, [
    says === undefined ? '' : notice('bad', says),
    html`<section>
${formHtml({ action: '/login', viewer: { canChange: true } }, fields)}
<p class="quiet">The event log keeps your name with your changes.</p>
</section>`,
  ])
}

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
