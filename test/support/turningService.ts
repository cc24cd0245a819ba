import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenOnLoopback } from './listenOnLoopback.ts'

/** A request, and the number of API calls so far, including this one. */
export interface Turn {
  method: string
  isToken: boolean
  authorization: string
  body: string
  calls: number
}

/** Starts a service whose JSON answers a callback gives for each request; null means no answer. */
export async function startTurning(answer: (turn: Turn) => { status: number; body: string } | null) {
  let calls = 0
  const server = createServer(async (request, response) => {
    const isToken = request.url?.startsWith('/oauth/') ?? false
    if (!isToken) calls++
    const { method = '', headers } = request
    const body = await text(request)
    const said = answer({ method, isToken, authorization: headers.authorization ?? '', body, calls })
    if (said !== null) response.writeHead(said.status, { 'content-type': 'application/json' }).end(said.body)
  })
  return { ...(await listenOnLoopback(server)), calls: () => calls }
}
