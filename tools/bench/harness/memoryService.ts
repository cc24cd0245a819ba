import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/**
 * The simplest stand-in for the service, in its own process: it keeps transactions in memory, checks nothing,
 * and is fast. The sandbox would be the bottleneck, because it writes every request to Postgres.
 *
 * argv: processing time in milliseconds. Prints `listening URL`. GET /_bench/arrivals gives the instants (epoch
 * milliseconds with fractions, the same clock as Postgres's on this machine) at which requests' first bytes were read.
 */
const processingMs = Number(process.argv[2] ?? 200)
const doneAtMs = new Map<string, number>()
const arrivals: { atMs: number; method: string; body: string }[] = []
const keepsArrivals = process.argv.includes('--arrivals')
let drawn = 0

const nowMs = () => performance.timeOrigin + performance.now()

const server = createServer((request, response) => {
  const atMs = nowMs()
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => {
    body += chunk
  })
  request.on('end', () => answer(request, response, body, atMs))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address && typeof address === 'object') process.stdout.write(`listening http://127.0.0.1:${address.port}\n`)
})
process.on('SIGTERM', () => process.exit(0))

function answer({ method = '', url = '' }: IncomingMessage, response: ServerResponse, body: string, atMs: number) {
  if (url === '/_bench/arrivals') return send(response, 200, arrivals)
  if (url === '/oauth/token')
    return send(response, 200, { access_token: 'bench', token_type: 'Bearer', expires_in: 3600 })
  if (keepsArrivals) arrivals.push({ atMs, method, body })
  if (method === 'POST') {
    const transactionId = `t${++drawn}`
    doneAtMs.set(transactionId, nowMs() + processingMs)
    return send(response, 200, { transactionId, status: 'accepted', timestamp: new Date().toISOString() })
  }
  const transactionId = url.slice(url.lastIndexOf('/') + 1)
  const until = doneAtMs.get(transactionId)
  if (until === undefined) return send(response, 404, { code: 'unknown' })
  if (until > nowMs()) return send(response, 200, { transactionId, status: 'pending' })
  doneAtMs.delete(transactionId)
  return send(response, 200, { transactionId, status: 'completed', result: {} })
}

function send(response: ServerResponse, status: number, json: unknown) {
  const text = JSON.stringify(json)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
