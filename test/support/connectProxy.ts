import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { listenOnLoopback } from './listenOnLoopback.ts'

/** How a proxy answers CONNECT. */
export type ProxyTreatment =
  | { kind: 'open' }
  /** Credentials that it requires; otherwise 407. */
  | { kind: 'authenticated'; user: string; password: string }
  /** Answers this status instead of a tunnel. */
  | { kind: 'refuse'; status: number }
  /** Does not answer. */
  | { kind: 'hang' }
  /** Closes the connection without an answer. */
  | { kind: 'close' }
  /** Opens the tunnel and cuts it after this many bytes were sent. */
  | { kind: 'cut'; afterBytes: number }

/** An HTTP proxy with CONNECT. */
export interface ConnectProxy extends AsyncDisposable {
  /** http://127.0.0.1:port */
  url: string
  /** Hosts and ports of the CONNECT requests. */
  asked(): readonly string[]
  /** Changes how later requests are answered. */
  treat(treatment: ProxyTreatment): void
}

export async function startConnectProxy(first: ProxyTreatment = { kind: 'open' }): Promise<ConnectProxy> {
  let treatment = first
  const asked: string[] = []
  const server = createServer((_, response) => response.writeHead(400).end())
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    asked.push(url)
    if (treatment.kind === 'hang') return
    if (treatment.kind === 'close') return client.destroy()
    const status = refusalOf(treatment, headers['proxy-authorization'])
    if (status !== null)
      return client.end(`HTTP/1.1 ${status} No\r\nproxy-authenticate: Basic\r\ncontent-length: 4\r\n\r\nsec!`)
    const upstream = connect(Number(url.split(':').at(-1)), '127.0.0.1').on('error', () => {})
    upstream.on('connect', () => client.write('HTTP/1.1 200 Connection established\r\n\r\n'))
    upstream.on('close', () => client.destroy())
    client.on('close', () => upstream.destroy())
    upstream.pipe(client)
    let left = treatment.kind === 'cut' ? treatment.afterBytes : Number.POSITIVE_INFINITY
    client.on('data', (chunk: Buffer) => {
      upstream.write(chunk.subarray(0, left))
      left -= chunk.length
      if (left <= 0) client.destroy()
    })
  })
  return {
    ...(await listenOnLoopback(server)),
    asked: () => asked,
    treat(next) {
      treatment = next
    },
  }
}

function refusalOf(treatment: ProxyTreatment, authorization = ''): number | null {
  if (treatment.kind === 'refuse') return treatment.status
  if (treatment.kind !== 'authenticated') return null
  const known = Buffer.from(`${treatment.user}:${treatment.password}`).toString('base64')
  return authorization === `Basic ${known}` ? null : 407
}
