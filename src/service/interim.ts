import type { Socket } from 'node:net'

/** Takes interim answers out of the bytes of a connection on which one request follows another. */
export interface InterimFilter {
  /** A request begins to leave: what comes next is the head of an answer. */
  begin(): void
  /** @returns what of these bytes, and of those held back before, is for the parser */
  pass(chunk: Buffer): Buffer
}

const headMaxBytes = 16_384
const interimStart = 'HTTP/1.1 1'
const wholeInterim = /^HTTP\/1\.1 1(?!01)[\s\S]*?\r\n\r\n/

/** Whether it could still become one. 101 is none: it ends the exchange, and nobody asked for it. */
const isBegun = (text: string) =>
  (text.startsWith(interimStart) || interimStart.startsWith(text)) && text.slice(9, 12) !== '101'

/**
 * Drops answers 1xx before the answer proper, which a client must be able to skip though it did not ask for them
 * (RFC 9110, 15.2). undici 8 closes the connection on `100 Continue`, and then nobody knows whether the POST arrived.
 */
export function withoutInterim(): InterimFilter {
  let isHead = true
  let held = Buffer.alloc(0)
  return {
    begin() {
      isHead = true
    },
    pass(chunk) {
      if (!isHead) return chunk
      let bytes = Buffer.concat([held, chunk])
      held = Buffer.alloc(0)
      for (;;) {
        const text = bytes.toString('latin1', 0, headMaxBytes)
        const interim = wholeInterim.exec(text)?.[0]
        if (interim !== undefined) {
          bytes = bytes.subarray(interim.length)
          continue
        }
        isHead = bytes.length < headMaxBytes && isBegun(text)
        if (!isHead) return bytes
        held = bytes
        return Buffer.alloc(0)
      }
    },
  }
}

/**
 * Puts the filter between a connection and undici's parser, which reads with `read()` and writes each request's head
 * first. With one request at a time, whatever is written begins an exchange.
 */
export function skipInterim(socket: Socket): Socket {
  const filter = withoutInterim()
  const read = socket.read.bind(socket)
  const write = socket.write.bind(socket)
  socket.read = (size?: number) => {
    for (;;) {
      const chunk: Buffer | null = read(size)
      if (chunk === null) return null
      const passed = filter.pass(chunk)
      if (passed.length > 0) return passed
    }
  }
  socket.write = ((...args: Parameters<typeof write>) => {
    filter.begin()
    return write(...args)
  }) as typeof socket.write
  return socket
}
