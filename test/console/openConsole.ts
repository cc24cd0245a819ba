import { serveConsole } from '../../src/commands/console.ts'
import type { TestContext } from '../support/context.ts'
import { until } from '../support/until.ts'

/** A console that listens on a port of loopback, as the command starts it, and a browser's manners towards it. */
export interface OpenedConsole extends AsyncDisposable {
  readonly url: string
  readonly context: TestContext
  get(path: string): Promise<Answered>
  /** Posts a form as its page would: with the token of the page at `from`. */
  post(path: string, fields?: Record<string, string>, from?: string): Promise<Answered>
}

export interface Answered {
  status: number
  headers: Headers
  text: string
}

/** @param context of the fixture, with the variables of the database; ended by disposal */
export async function openConsole(context: TestContext, options: { readOnly?: boolean } = {}): Promise<OpenedConsole> {
  const ended = serveConsole(context, { port: 0, host: '127.0.0.1', json: true, ...options })
  const printed = await Promise.race([until(context.printed, (text) => text.endsWith('\n')), ended.then(String)])
  if (!printed.startsWith('{')) throw new Error(`the console ended with ${printed}: ${context.messages()}`)
  const { url } = JSON.parse(printed) as { url: string }
  const cookies = new Map<string, string>()
  const ask = async (path: string, init: RequestInit = {}): Promise<Answered> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(`${url}${path}`, {
      redirect: 'manual',
      ...init,
      headers: { cookie, ...(init.headers as Record<string, string>) },
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return {
    url,
    context,
    get: (path) => ask(path),
    async post(path, fields = {}, from = '/') {
      const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec((await ask(from)).text) ?? []
      return ask(path, {
        method: 'POST',
        body: new URLSearchParams({ csrf, ...fields }),
        headers: { origin: url, 'sec-fetch-site': 'same-origin' },
      })
    },
    async [Symbol.asyncDispose]() {
      context.abort()
      await ended
    },
  }
}
