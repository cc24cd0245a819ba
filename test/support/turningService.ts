import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenOnLoopback } from './listenOnLoopback.ts'

/** A request, and how many calls of the API there have been with it. */
export interface Turn {
  method: string
  isToken: boolean
  authorization: string
  body: string
  calls: number
}

/** Starts a service that answers as it is told for each request, in JSON; null is no answer at all. */
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
