import { once } from 'node:events'
import { type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { command as serveConsole } from '../../src/commands/console.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import type { TestContext } from '../support/context.ts'
import { until } from '../support/until.ts'

/** Requests to a console, made as a browser makes them. */
export interface Visitor {
  readonly url: string
  get(path: string): Promise<Answered>
  /** Posts a form as a page of the console does. */
  post(path: string, fields?: Record<string, string | readonly string[]>): Promise<Answered>
  /** Sends a request exactly as given, without cookies. */
  ask(path: string, asked?: Asked): Promise<Answered>
  /** The browser's cookies. */
  readonly cookies: Map<string, string>
}

/** A console that listens on a port of loopback, as the command starts it. */
export interface OpenedConsole extends Visitor, AsyncDisposable {
  readonly context: TestContext
  /** Stops the console as SIGTERM does. @returns the command's exit code */
  stop(): Promise<number>
}

interface Asked {
  method?: string
  headers?: Record<string, string | string[]>
  body?: string
  /** The local address to connect from, such as 127.0.0.2. */
  from?: string
}

export interface Answered {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Headers that a browser adds to a form of the console's own page. */
export const asForm = (url: string) => ({
  'content-type': 'application/x-www-form-urlencoded',
  origin: url,
  'sec-fetch-site': 'same-origin',
})

/** Starts the command. @param context of the fixture, with the variables of the database; disposal stops it */
export async function openConsole(
  context: TestContext,
  options: Partial<OptionsOf<typeof serveConsole>> = {},
): Promise<OpenedConsole> {
  const ended = serveConsole.action(context, { port: 0, host: '127.0.0.1', json: true, ...options })
  const printed = await Promise.race([until(context.printed, (said) => said.endsWith('\n')), ended.then(String)])
  if (!printed.startsWith('{')) throw new Error(`the console ended with ${printed}: ${context.messages()}`)
  const { url } = JSON.parse(printed) as { url: string }
  const stop = () => {
    context.abort()
    return ended
  }
  return { ...visit(url), context, stop, [Symbol.asyncDispose]: async () => void (await stop()) }
}

/** A browser that has not visited the console yet. @param address the local address to connect from */
export function visit(url: string, address?: string): Visitor {
  const cookies = new Map<string, string>()
  const ask = async (path: string, { method = 'GET', headers = {}, body, from = address }: Asked = {}) => {
    const asking = request(`${url}${path}`, {
      method,
      headers,
      ...(from === undefined ? {} : { localAddress: from }),
      agent: false, // no connection stays open
    })
    asking.end(body)
    const [response] = await once(asking, 'response')
    return { status: response.statusCode, headers: response.headers, text: await text(response) } as Answered
  }
  const browse = async (path: string, { headers = {}, ...asked }: Asked = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answered = await ask(path, { ...asked, headers: { ...headers, ...(cookie === '' ? {} : { cookie }) } })
    for (const set of answered.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    return answered
  }
  return {
    url,
    cookies,
    ask,
    get: (path) => browse(path),
    post(path, fields = {}) {
      const body = new URLSearchParams(Object.entries(fields).flatMap(each)).toString()
      return browse(path, { method: 'POST', body, headers: asForm(url) })
    },
  }
}

const each = ([name, values]: [string, string | readonly string[]]) => [values].flat().map((value) => [name, value])
