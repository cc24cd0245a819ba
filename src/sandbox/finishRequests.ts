import type { FastifyInstance } from 'fastify'

/** Who is still sending after it, or waits for a database that does not answer, is cut off. */
const graceMs = 4_500

/** Between a request's answer and the client's next on the same connection. */
const idleCheckMs = 50

/** Stops listening and answers what has arrived; connections that wait for a next request are closed as they become idle. */
export async function finishRequests(app: FastifyInstance): Promise<void> {
  const idleCheck = setInterval(() => app.server.closeIdleConnections(), idleCheckMs)
  const impatience = setTimeout(() => app.server.closeAllConnections(), graceMs)
  try {
    await app.close()
  } finally {
    clearInterval(idleCheck)
    clearTimeout(impatience)
  }
}
