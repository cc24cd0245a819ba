import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { listenOnLoopback } from './listenOnLoopback.ts'

/** How a proxy treats whoever asks for a way. */
export type ProxyTreatment =
  | { kind: 'open' }
  /** Only with these, else 407. */
  | { kind: 'authenticated'; user: string; password: string }
  /** This status instead of a way. */
  | { kind: 'refuse'; status: number }
  /** Says nothing. */
  | { kind: 'hang' }
  /** Closes without a word. */
  | { kind: 'close' }
  /** Opens the way, and cuts it after so many bytes of what is sent. */
  | { kind: 'cut'; afterBytes: number }

/** An HTTP proxy as companies have it. */
export interface ConnectProxy extends AsyncDisposable {
  /** http://127.0.0.1:port */
  url: string
  /** The hosts and ports that ways were asked to. */
  asked(): readonly string[]
  /** Of who asks from now on. */
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
