import type { Socket } from 'node:net'

export interface InterimFilter {
  /** Called when a request leaves: the head of an answer comes next. */
  begin(): void
  /** @returns the bytes for the parser, of this chunk and of those held back */
  pass(chunk: Buffer): Buffer
}

const headMaxBytes = 16_384
const interimStart = 'HTTP/1.1 1'
const wholeInterim = /^HTTP\/1\.1 1(?!01)[\s\S]*?\r\n\r\n/

/** Excludes 101, which ends the exchange and which no request asks for. */
const isBegun = (text: string) =>
  (text.startsWith(interimStart) || interimStart.startsWith(text)) && text.slice(9, 12) !== '101'

/**
 * Drops 1xx answers, as clients must (RFC 9110, 15.2). undici 8 closes the connection on `100 Continue`, and then it is
 * unknown if the POST arrived.
 */
export function createInterimResponseFilter(): InterimFilter {
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

/** Filters what undici's parser reads. Each write begins an exchange, because there is one request at a time. */
export function skipInterimResponses(socket: Socket): Socket {
  const filter = createInterimResponseFilter()
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
