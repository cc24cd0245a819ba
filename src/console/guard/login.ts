import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { normalizePersonName } from '../../operations/actor.ts'
import { notice } from '../html/elements.ts'
import { fieldTextAsTyped, formHtml, hiddenField } from '../html/form.ts'
import { html } from '../html/html.ts'
import { sendPage } from '../html/layout.ts'
import type { ConsoleParts } from '../parts.ts'
import { isPasswordCorrect, type PasswordHash } from './passwordHash.ts'
import {
  clearSessionCookie,
  readDeviceCookie,
  type SessionStore,
  sessionIdOf,
  setDeviceCookie,
  setSessionCookie,
} from './sessions.ts'

const formMaxBytes = 8_192

const passwordCharsMax = 1_000

interface Login {
  hash: PasswordHash
  csrf: string
  sessions: SessionStore
  parts: ConsoleParts
}

/**
 * Bounds wrong passwords per address, whose IPv6 nets count as one, and of all addresses. A browser that signed in before
 * has tries of its own (OWASP's device cookies), so that others cannot lock it out.
 */
function createTryLimit(app: FastifyInstance, hash: PasswordHash) {
  const timeWindow = 60_000
  const keyGenerator = (request: FastifyRequest) => readDeviceCookie(request, hash) ?? ''
  const device = app.createRateLimit({ max: 5, timeWindow, keyGenerator })
  const address = app.createRateLimit({ max: 5, timeWindow })
  const all = app.createRateLimit({ max: 30, timeWindow, keyGenerator: () => '' })
  const limitsOf = (request: FastifyRequest) => (keyGenerator(request) === '' ? [address, all] : [device])
  return {
    async secondsToWait(request: FastifyRequest): Promise<number> {
      const limits = await Promise.all(limitsOf(request).map((limit) => limit(request, { increment: false })))
      return Math.max(...limits.map((limit) => (!limit.isAllowed && limit.remaining === 0 ? limit.ttlInSeconds : 0)))
    },
    async countWrong(request: FastifyRequest): Promise<void> {
      await Promise.all(limitsOf(request).map((limit) => limit(request)))
    },
  }
}

export function addLoginRoutes(app: FastifyInstance, { hash, csrf, sessions, parts }: Login): void {
  const tries = createTryLimit(app, hash)
  let lastTry: Promise<unknown> = Promise.resolve()
  const open = { needsNoViewer: true, changesNothing: true } as const
  app.get('/login', { config: open }, (request, reply) =>
    request.viewer === undefined ? sendForm(reply, { csrf, to: '/' }) : reply.redirect('/', 303),
  )
  app.post('/login', { config: open, bodyLimit: formMaxBytes }, async (request, reply) => {
    const { ip } = request
    const to = ownPath(fieldTextAsTyped(request.body, 'to'))
    const name = normalizePersonName(fieldTextAsTyped(request.body, 'name'))
    const again = (status: number, says: string) => sendForm(reply.code(status), { csrf, to, says, name: name ?? '' })
    if (name === null) return again(400, 'Give your name: the event log keeps it with your changes.')
    const password = fieldTextAsTyped(request.body, 'password')
    const judge = async () => {
      const wait = await tries.secondsToWait(request)
      if (wait > 0) return wait
      const isCorrect = password.length <= passwordCharsMax && (await isPasswordCorrect(password, hash))
      if (!isCorrect) await tries.countWrong(request)
      return isCorrect ? 0 : null
    }
    // One password at a time, so that a try is counted before the next begins.
    const judged = lastTry.then(judge)
    lastTry = judged.catch(() => {})
    const seconds = await judged
    if (seconds === null) {
      parts.say(`the console was given a wrong password from ${ip}`)
      return again(401, 'Wrong password.')
    }
    if (seconds > 0) {
      reply.header('retry-after', seconds)
      return again(429, `Too many wrong passwords. Try again in ${seconds} s.`)
    }
    sessions.end(sessionIdOf(request))
    setSessionCookie(request, reply, sessions.begin(name))
    setDeviceCookie(request, reply, hash)
    parts.say(`operator ${name} signed in to the console from ${ip}`)
    return reply.redirect(to, 303)
  })
  app.post('/logout', { config: { changesNothing: true } }, (request, reply) => {
    sessions.end(sessionIdOf(request))
    clearSessionCookie(request, reply)
    return reply.redirect('/login', 303)
  })
}

export function sendLoginPage(request: FastifyRequest, reply: FastifyReply, csrf: string): FastifyReply {
  const { method, url, headers } = request
  // A link on another site comes without the strict cookie. A refresh from our own page sends the cookie.
  if (method === 'GET' && headers['sec-fetch-site'] === 'cross-site')
    return sendPage(reply.header('refresh', '0'), { title: 'One moment' }, html`<a href="${ownPath(url)}">Go on</a>`)
  const [to, says] = method === 'GET' ? [url, undefined] : ['/', 'You are no longer signed in. Nothing was changed.']
  return sendForm(reply.code(401), { csrf, to: ownPath(to), says })
}

function ownPath(text: string): string {
  const base = 'http://console.invalid'
  if (!text.startsWith('/') || !URL.canParse(text, base)) return '/'
  const { origin, pathname, search } = new URL(text, base)
  // URL turns `/.//x` into `//x`, which is another site's address.
  const isOurs = origin === base && pathname !== '/login' && !pathname.startsWith('//')
  return isOurs ? `${pathname}${search}` : '/'
}

interface LoginForm {
  csrf: string
  to: string
  name?: string
  says?: string | undefined
}

function sendForm(reply: FastifyReply, { csrf, to, name = '', says }: LoginForm): FastifyReply {
  const fields = html`${hiddenField('to', to)}
<label>Your name <input name="name" value="${name}" autocomplete="username" required maxlength="100"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button class="main">sign in</button>`
  const main = html`${says === undefined ? '' : notice('bad', html`<p>${says}</p>`)}
<section>
${formHtml({ action: '/login', viewer: { csrf, canChange: true } }, fields)}
<p class="quiet">The event log keeps your name with your changes.</p>
</section>`
  return sendPage(reply, { title: 'Sign in' }, main)
}
