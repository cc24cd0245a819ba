import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listenOnLoopback } from './listenOnLoopback.ts'

/** A server at a wrong address of the service. */
export interface StrangeService extends AsyncDisposable {
  url: string
  /** The requests, as `GET /path`, in their order. */
  asked: readonly string[]
  /** Requests that arrived at the target of its redirects. */
  elsewhere: readonly string[]
}

type Answer = (request: IncomingMessage, response: ServerResponse, elsewhereUrl: string) => void

const answers = {
  /** The page of a proxy or a hotel's network. */
  page: (_request, response) => {
    response
      .setHeader('content-type', 'text/html')
      .end('<!doctype html><title>Welcome</title><h1>Please sign in</h1>\n')
  },
  /** Never answers. */
  hangs: () => {},
  redirects: ({ url }, response, elsewhereUrl) => {
    response.writeHead(302, { location: `${elsewhereUrl}${url}` }).end()
  },
  closes: (request) => {
    request.socket.destroy()
  },
  /** Sends half an answer, then closes the connection. */
  breaks: (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
    response.write('{"transactionId": "', () => response.destroy())
  },
  /** Sends single bytes for ever, with pauses shorter than a timeout. */
  drips: (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 50)
    response.on('close', () => clearInterval(timer))
  },
  /** Sends for ever, as fast as the client reads. */
  endless: (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"transactionId": "')
    const chunk = 'x'.repeat(65_536)
    const more = () => {
      while (!response.destroyed && response.write(chunk));
    }
    response.on('drain', more)
    more()
  },
  /** Answers 200 with an empty body. */
  empty: (_request, response) => {
    response.writeHead(204).end()
  },
  /** Answers with JSON of a different kind. */
  other: (_request, response) => {
    response.setHeader('content-type', 'application/json').end('{"name": "something else", "version": "3.1"}')
  },
  /** Answers with something that is not HTTP. */
  noise: (request) => {
    request.socket.end('SSH-2.0-OpenSSH_9.6\r\n')
  },
} satisfies Record<string, Answer>

export type Strangeness = keyof typeof answers
export const strangenesses = Object.keys(answers) as Strangeness[]

/**
 * Starts a server that is not the service.
 *
 * @param givesTokens true if its token endpoint gives tokens, so that the client makes further calls
 */
export async function startStrangeService(kind: Strangeness, { givesTokens = false } = {}): Promise<StrangeService> {
  const [asked, elsewhere]: [string[], string[]] = [[], []]
  const other = await listenOnLoopback(
    createServer((request, response) => {
      elsewhere.push(nameOf(request))
      response.end()
    }),
  )
  const answer: Answer = answers[kind]
  const server = await listenOnLoopback(
    createServer((request, response) => {
      asked.push(nameOf(request))
      if (givesTokens && request.url?.startsWith('/oauth/token')) return void sendToken(response)
      answer(request, response, other.url)
    }),
  )
  return {
    url: server.url,
    asked,
    elsewhere,
    async [Symbol.asyncDispose]() {
      await Promise.all([server[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
    },
  }
}

function nameOf({ method, url }: IncomingMessage): string {
  return `${method} ${url}`
}

function sendToken(response: ServerResponse): void {
  const token = { access_token: 'a-token', token_type: 'Bearer', expires_in: 3600 }
  response.setHeader('content-type', 'application/json').end(JSON.stringify(token))
}
