import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as after, setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Faults of a TCP connection. The request is all that the client sends, the answer all that the server sends. Where
 * they begin and end shows in the bytes' direction, so that it works in front of HTTP and Postgres alike.
 */
export type Fault =
  /** The port is closed, and open connections are reset. */
  | { kind: 'refuse' }
  /** Closed when the request's first bytes come; the server sees none of them. */
  | { kind: 'cut-before-request' }
  /** The same with a reset. */
  | { kind: 'reset' }
  /** Closed after `afterBytes` of the request; without it, one byte before the end of the first packet. */
  | { kind: 'cut-during-request'; afterBytes?: number }
  /** The server has the request and has answered; the answer is dropped and the connection closed. */
  | { kind: 'cut-after-request' }
  /** The same with a reset. */
  | { kind: 'reset-after-request' }
  /** Closed one byte before the end of the answer's first packet. */
  | { kind: 'cut-during-answer' }
  /** Stays open; the request goes nowhere. */
  | { kind: 'hang' }
  /** Stays open; the server has the request, its answer goes nowhere. */
  | { kind: 'hang-after-request' }
  /** Stays open; from now on nothing passes either way, not even a close. */
  | { kind: 'half-open' }
  /** All bytes wait, both ways, until the fault is switched off or replaced. */
  | { kind: 'hold' }
  /** Every packet comes `ms` later, both ways, until the fault is switched off. */
  | { kind: 'delay'; ms: number }
  /** Both ways in pieces of `bytes`. */
  | { kind: 'slice'; bytes: number }
  /** The answer's headers at once, then its body byte by byte, one every `everyMs`. */
  | { kind: 'drip'; everyMs: number }

export interface FaultProxy {
  host: string
  port: number
  /** http://host:port */
  url: string
  /**
   * Switches a fault on for all connections, even open ones, or off with null. A connection that it struck stays as
   * it is. The fault ends after `times` strikes, each on a different connection.
   */
  setFault(fault: Fault | null, options?: { times: number }): Promise<void>
  /** Resolves when the latest fault has struck `times` times. Strikes of `refuse` are not counted. */
  struck(times?: number): Promise<void>
  /** Connections accepted so far. */
  connections(): number
  close(): Promise<void>
}

/** Starts a TCP proxy that breaks connections at a chosen point. */
export async function startFaultProxy({ target }: { target: { host: string; port: number } }): Promise<FaultProxy> {
  const faults = createFaults()
  const pairs = new Set<Pair>()
  let accepted = 0
  let server: Server | null = null

  async function listen(port: number): Promise<number> {
    server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      accepted++
      const upstream = connect({ ...target, allowHalfOpen: true, noDelay: true })
      const pair = joinPair(client, upstream, faults)
      pairs.add(pair)
      client.on('close', () => pairs.delete(pair))
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  async function stopListening(): Promise<void> {
    const closing = server
    server = null
    for (const pair of pairs) pair.reset()
    if (closing) await new Promise((resolve) => closing.close(resolve))
  }

  const port = await listen(0)
  return {
    host: '127.0.0.1',
    port,
    url: `http://127.0.0.1:${port}`,
    async setFault(fault, options = { times: Number.POSITIVE_INFINITY }) {
      faults.set(fault, options.times)
      if (fault?.kind === 'refuse') await stopListening()
      else if (server === null) await listen(port)
    },
    struck: (times = 1) => faults.struck(times),
    connections: () => accepted,
    close: stopListening,
  }
}

interface Faults {
  current(): Fault | null
  set(fault: Fault | null, times: number): void
  strike(): void
  struck(times: number): Promise<void>
  /** Resolves when the fault is replaced or switched off. */
  changed(): Promise<void>
}

function createFaults(): Faults {
  let fault: Fault | null = null
  let left = 0
  let strikes = 0
  let waiting: { times: number; resolve: () => void }[] = []
  let change = Promise.withResolvers<void>()
  return {
    current: () => (left > 0 ? fault : null),
    set(next, times) {
      fault = next
      left = times
      strikes = 0
      change.resolve()
      change = Promise.withResolvers<void>()
    },
    strike() {
      left--
      strikes++
      for (const one of waiting) if (one.times <= strikes) one.resolve()
      waiting = waiting.filter((one) => one.times > strikes)
    },
    struck(times) {
      if (strikes >= times) return Promise.resolve()
      return new Promise((resolve) => waiting.push({ times, resolve }))
    },
    changed: () => change.promise,
  }
}

type Direction = 'request' | 'answer'

interface Pair {
  reset(): void
}

/** Joins two sockets, and checks for each packet whether a fault strikes it. */
function joinPair(client: Socket, upstream: Socket, faults: Faults): Pair {
  /** The fault that has struck this connection. */
  let stuck: Fault | null = null
  /** Bytes of the request that a cut still lets through. */
  let requestBytesLeft: number | null = null
  // Packets of both directions, in order: a slow piece must not be overtaken by the next packet, or by the close.
  const queues = { request: Promise.resolve(), answer: Promise.resolve() }

  function end(how: 'close' | 'reset'): void {
    for (const socket of [client, upstream]) how === 'reset' ? socket.resetAndDestroy() : socket.destroy()
  }

  function strikes(direction: Direction): Fault | null {
    if (stuck !== null) return stuck
    const fault = faults.current()
    if (fault === null || !strikesOn(fault, direction)) return null
    stuck = fault
    faults.strike()
    return fault
  }

  async function pass(direction: Direction, chunk: Buffer): Promise<void> {
    const to = direction === 'request' ? upstream : client
    const send = (bytes: Buffer) => write(to, bytes)
    const fault = strikes(direction)
    switch (fault?.kind) {
      case undefined:
        return send(chunk)
      case 'refuse':
      case 'cut-before-request':
        return end('close')
      case 'cut-after-request':
        return direction === 'answer' ? end('close') : send(chunk)
      case 'reset':
        return end('reset')
      case 'reset-after-request':
        return direction === 'answer' ? end('reset') : send(chunk)
      case 'cut-during-request': {
        requestBytesLeft ??= fault.afterBytes ?? chunk.length - 1
        const part = chunk.subarray(0, requestBytesLeft)
        requestBytesLeft -= part.length
        await send(part)
        return requestBytesLeft === 0 ? endGently() : undefined
      }
      case 'cut-during-answer':
        if (direction === 'request') return send(chunk)
        await send(chunk.subarray(0, -1))
        return endGently()
      case 'hang':
      case 'half-open':
        return
      case 'hang-after-request':
        return direction === 'request' ? send(chunk) : undefined
      case 'hold':
        await faults.changed()
        stuck = null
        return send(chunk)
      case 'delay':
        stuck = null
        await after(fault.ms)
        return send(chunk)
      case 'slice':
        return sendPieces(chunk, fault.bytes, send, nextTurn)
      case 'drip': {
        if (direction === 'request') return send(chunk)
        const bodyAt = chunk.indexOf('\r\n\r\n') + 4
        await send(chunk.subarray(0, bodyAt > 3 ? bodyAt : 0))
        return sendPieces(chunk.subarray(bodyAt > 3 ? bodyAt : 0), 1, send, () => after(fault.everyMs))
      }
      default:
        return fault satisfies never
    }
  }

  /** Closes without losing what was written: a plain destroy could drop it with a reset. */
  function endGently(): void {
    client.end(() => client.destroy())
    upstream.end(() => upstream.destroy())
  }

  /** A close passes like a packet, unless the connection hangs. */
  function passClose(direction: Direction): void {
    const silent = stuck?.kind === 'half-open' || (direction === 'answer' && stuck?.kind.startsWith('hang'))
    if (!silent) (direction === 'request' ? upstream : client).end()
  }

  function follow(from: Socket, direction: Direction): void {
    const queue = (work: () => Promise<void> | void) => {
      queues[direction] = queues[direction].then(work)
    }
    from.on('data', (chunk: Buffer) => queue(() => pass(direction, chunk)))
    from.on('end', () => queue(() => passClose(direction)))
    // An error on one side resets the other, so that the server does not wait for a client that gave up.
    from.on('error', () => {
      if (stuck?.kind !== 'half-open') end('reset')
    })
    if (from === client) from.on('close', () => upstream.destroy())
  }

  follow(client, 'request')
  follow(upstream, 'answer')
  return { reset: () => end('reset') }
}

/** True if the fault strikes in this direction: most faults concern only the request or only the answer. */
function strikesOn({ kind }: Fault, direction: Direction): boolean {
  if (['slice', 'half-open', 'hold', 'delay'].includes(kind)) return true
  const onAnswer = ['cut-after-request', 'reset-after-request', 'cut-during-answer', 'hang-after-request', 'drip']
  return onAnswer.includes(kind) === (direction === 'answer')
}

/** Writes and waits until the system has taken the bytes. Does nothing if the socket is closed. */
function write(to: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (to.destroyed || to.writableEnded || bytes.length === 0) resolve()
    else to.write(bytes, () => resolve())
  })
}

async function sendPieces(
  chunk: Buffer,
  size: number,
  send: (piece: Buffer) => Promise<void>,
  pause: () => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < chunk.length; at += size) {
    await send(chunk.subarray(at, at + size))
    await pause()
  }
}
