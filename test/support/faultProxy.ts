import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as after, setImmediate as nextTurn } from 'node:timers/promises'

/**
 * What can happen to a TCP connection. The request is what the client sends, the answer what the server sends; where
 * they begin and end shows in the bytes' direction, so that it works in front of HTTP and Postgres alike.
 */
export type Fault =
  /** Nobody listens, and what was connected is reset. */
  | { kind: 'refuse' }
  /** Closed when the request's first bytes come; the server sees none of them. */
  | { kind: 'cut-before-request' }
  /** The same with a reset. */
  | { kind: 'reset' }
  /** Closed after so many bytes of the request; without a number, one byte before the end of its first packet. */
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
  /** Everything waits, both ways, until the fault is switched off or another on. */
  | { kind: 'hold' }
  /** Every packet comes so much later, both ways, until the fault is switched off. */
  | { kind: 'delay'; ms: number }
  /** Both ways in pieces of so many bytes. */
  | { kind: 'slice'; bytes: number }
  /** The answer's headers at once, then its body byte by byte, one every so many milliseconds. */
  | { kind: 'drip'; everyMs: number }

export interface FaultProxy {
  host: string
  port: number
  /** http://host:port */
  url: string
  /**
   * Switches a fault on for all connections, the open ones too, or off with null. A connection it has struck stays as
   * it is. It ends by itself after `times` strikes, each on another connection.
   */
  setFault(fault: Fault | null, options?: { times: number }): Promise<void>
  /** Resolves when the fault switched on last has struck so often. `refuse` strikes unseen. */
  struck(times?: number): Promise<void>
  /** Connections accepted so far. */
  connections(): number
  /** Connections open now. */
  open(): number
  /** Bytes of requests that reached the server. */
  forwardedBytes(): number
  close(): Promise<void>
}

/** Starts a TCP proxy that breaks connections at a chosen point. */
export async function startFaultProxy({ target }: { target: { host: string; port: number } }): Promise<FaultProxy> {
  const faults = createFaults()
  const pairs = new Set<Pair>()
  let accepted = 0
  let forwarded = 0
  let server: Server | null = null

  async function listen(port: number): Promise<number> {
    server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      accepted++
      const upstream = connect({ ...target, allowHalfOpen: true, noDelay: true })
      const pair = joinPair(client, upstream, faults, (bytes) => {
        forwarded += bytes
      })
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
    open: () => pairs.size,
    forwardedBytes: () => forwarded,
    close: stopListening,
  }
}

interface Faults {
  current(): Fault | null
  set(fault: Fault | null, times: number): void
  strike(): void
  struck(times: number): Promise<void>
  /** Resolves when another fault is set, or none. */
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

/** Joins two sockets; every packet asks whether a fault strikes it. */
function joinPair(client: Socket, upstream: Socket, faults: Faults, forwarded: (bytes: number) => void): Pair {
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
    const send = (bytes: Buffer) => {
      if (direction === 'request') forwarded(bytes.length)
      return write(to, bytes)
    }
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
    // A broken half breaks the other, as a cable would not; a client that gave up must not leave the server waiting.
    from.on('error', () => {
      if (stuck?.kind !== 'half-open') end('reset')
    })
    if (from === client) from.on('close', () => upstream.destroy())
  }

  follow(client, 'request')
  follow(upstream, 'answer')
  return { reset: () => end('reset') }
}

/** A fault that concerns the answer alone leaves the request in peace, and the other way round. */
function strikesOn({ kind }: Fault, direction: Direction): boolean {
  if (['slice', 'half-open', 'hold', 'delay'].includes(kind)) return true
  const onAnswer = ['cut-after-request', 'reset-after-request', 'cut-during-answer', 'hang-after-request', 'drip']
  return onAnswer.includes(kind) === (direction === 'answer')
}

/** Writes, and waits until the system has taken it; to a socket that has gone, nothing. */
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
