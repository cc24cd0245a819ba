import { createServer, type IncomingHttpHeaders } from 'node:http'
import { json } from 'node:stream/consumers'
import type { Attribute, Span } from '../../src/observe/spanExporter.ts'
import { type Listening, listenOnLoopback } from './listenOnLoopback.ts'

/** A span with its attributes by name. */
export type CollectedSpan = Omit<Span, 'attributes'> & { attributes: Record<string, string | number> }

/** An OpenTelemetry collector that keeps what it gets. */
export interface Collector extends Listening {
  /** Spans of the requests that were answered with 200. */
  spans(): readonly CollectedSpan[]
  /** Attributes of the process that sent the last request. */
  resource(): Record<string, string | number>
  /** Paths and headers of all requests. */
  requests(): readonly { path: string; headers: IncomingHttpHeaders }[]
  /** Answers later requests with this status; null: never. */
  answer(status: number | null): void
}

interface TracesRequest {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: Span[] }[] }[]
}

export async function startCollector(first: number | null = 200): Promise<Collector> {
  let status = first
  let resource: Record<string, string | number> = {}
  const spans: CollectedSpan[] = []
  const requests: { path: string; headers: IncomingHttpHeaders }[] = []
  const server = createServer(async (request, response) => {
    const { resourceSpans } = (await json(request)) as TracesRequest
    requests.push({ path: request.url ?? '', headers: request.headers })
    if (status === null) return
    for (const { resource: sender, scopeSpans } of status === 200 ? resourceSpans : []) {
      resource = valuesOf(sender.attributes)
      for (const span of scopeSpans.flatMap((each) => each.spans))
        spans.push({ ...span, attributes: valuesOf(span.attributes) })
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  })
  return {
    ...(await listenOnLoopback(server)),
    spans: () => spans,
    resource: () => resource,
    requests: () => requests,
    answer(next) {
      status = next
    },
  }
}

const valuesOf = (attributes: readonly Attribute[]): Record<string, string | number> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, 'intValue' in value ? Number(value.intValue) : value.stringValue]),
  )
