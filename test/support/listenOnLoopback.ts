import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'

/** A server of a test. Disposal ends its connections, too. */
export interface Listening extends AsyncDisposable {
  readonly port: number
  /** http://127.0.0.1:port */
  readonly url: string
}

/** Makes a server listen on a free port of loopback. */
export async function listenOnLoopback(server: Server): Promise<Listening> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
