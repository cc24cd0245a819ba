import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import formbody from '@fastify/formbody'
import helmet from '@fastify/helmet'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { countByState } from '../ledger/operator/selectSubmissions.ts'
import { packageFolder } from '../packageFolder.ts'
import { addAuditRoutes } from './auditPage.ts'
import { explainConsoleError, RequestRefused } from './errors.ts'
import { type GuardOptions, installGuard } from './guard/installGuard.ts'
import { notice, untrustedLinesHtml } from './html/elements.ts'
import { html } from './html/html.ts'
import { type AssetName, addKeysRoute, countNeedingAttention, sendPage } from './html/layout.ts'
import { addMappingRoutes } from './mappingPage.ts'
import { addOverviewRoutes } from './overview/overviewPage.ts'
import { type ConsoleParts, overviewVersionPath, shareRecentRead } from './parts.ts'
import { addRecordRoutes } from './record/recordPage.ts'
import { addResolveRoutes } from './record/resolvePage.ts'
import { addBulkChangeRoutes, RecentChanges } from './records/changePage.ts'
import { addRecordsRoutes } from './records/recordsPage.ts'
import { UnmaskPermissions } from './valueAccess.ts'

const assetsDir = join(packageFolder, 'assets')

const connectionsMax = 1_000

const closeWithinMs = 3_000

const limits = {
  bodyLimit: 100_000, // a page of ticked records, or a payload to map
  requestTimeout: 30_000,
  keepAliveTimeout: 5_000,
  forceCloseConnections: 'idle' as const,
  routerOptions: { maxParamLength: 1_000 },
  http: { maxHeaderSize: 16_384, headersTimeout: 10_000, connectionsCheckingInterval: 1_000 },
}

/** Returns a server that does not listen yet. */
export async function createConsole(parts: ConsoleParts, guard: GuardOptions): Promise<FastifyInstance> {
  const app = fastify({ ...limits, trustProxy: guard.isProxy, frameworkErrors: refuseUnreadableAddress })
  app.decorate('installation', parts.installation)
  app.server.maxConnections = connectionsMax
  app.addHook('preClose', async () => {
    setTimeout(() => app.server.closeAllConnections(), closeWithinMs).unref()
  })
  await app.register(helmet, headers)
  app.removeAllContentTypeParsers() // only forms are accepted
  await app.register(formbody)
  app.addHook('onRequest', async (_request, reply) => void reply.header('cache-control', 'no-store'))
  installErrorHandlers(app, parts)
  await installGuard(app, guard, parts)
  keepCounts(app, parts)
  app.decorate('assetPaths', addAssetRoutes(app))
  const [changes, shown] = [new RecentChanges(), new UnmaskPermissions(parts.clock)]
  addOverviewRoutes(app, parts)
  addRecordsRoutes(app, parts, { changes, shown })
  addBulkChangeRoutes(app, parts, changes)
  addRecordRoutes(app, parts, { changes, shown })
  addResolveRoutes(app, parts)
  addMappingRoutes(app, parts)
  addAuditRoutes(app, parts)
  addKeysRoute(app)
  return app
}

/** Sets the security headers itself, because hooks do not run for an unreadable address. */
function refuseUnreadableAddress(_error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'content-security-policy': "default-src 'none'", 'x-content-type-options': 'nosniff' })
  void reply.code(400).type('text/plain; charset=utf-8').send('The address cannot be read.\n')
}

function installErrorHandlers(app: FastifyInstance, { say }: ConsoleParts): void {
  app.setNotFoundHandler(() => {
    throw new RequestRefused(404, 'There is no page at this address.')
  })
  app.setErrorHandler((error: Error, { method, url, routeOptions }, reply) => {
    const { status, title, words, isPassing } = explainConsoleError(error)
    if (status >= 500 && routeOptions.config.isPolled !== true)
      say(`the console could not answer ${method} ${url.split('?', 1)[0]}: ${words}`)
    const willReload = isPassing && method === 'GET'
    const hope = willReload ? html`<p>This page loads again by itself when the database answers.</p>` : ''
    const head = { title, ...(willReload && { live: { path: overviewVersionPath } }) }
    return sendPage(reply.code(status), head, notice('bad', [untrustedLinesHtml(words), hope]))
  })
}

const countsAgeMs = 5_000

/** Each page has the number of records that need attention, and so has the answer to each poll. */
function keepCounts(app: FastifyInstance, { databases, clock, installation }: ConsoleParts): void {
  const readAnew = () => shareRecentRead(clock, countsAgeMs, async () => countByState((await databases()).ledger))
  let read = readAnew()
  app.addHook('preHandler', async ({ viewer, routeOptions: { config } }) => {
    if (viewer === undefined || config?.needsNoViewer) return
    installation.counts = await read().catch(() => null)
  })
  app.addHook('onSend', async ({ method }) => {
    if (method === 'POST') read = readAnew() // it may have changed records
  })
  app.addHook('preSerialization', async (_request, _reply, payload) => {
    const { counts } = installation
    return counts === null ? payload : { ...(payload as object), needAttention: countNeedingAttention(counts) }
  })
}

/** Pages load nothing from other hosts, run no inline script, and cannot be framed. */
const headers = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      styleSrc: ["'self'"],
      scriptSrc: ["'self'"],
      imgSrc: ["'self'"],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  referrerPolicy: { policy: 'same-origin' as const },
  hsts: false,
  xFrameOptions: { action: 'deny' as const },
}

const assetTypes: Record<AssetName, string> = {
  'console.css': 'text/css; charset=utf-8',
  'console.js': 'text/javascript; charset=utf-8',
  'keys.js': 'text/javascript; charset=utf-8',
  'console.svg': 'image/svg+xml',
}

/** Serves each file under a path that names its content, so that a browser never asks again. @returns the paths */
function addAssetRoutes(app: FastifyInstance): Record<AssetName, string> {
  const paths = Object.entries(assetTypes).map(([name, type]) => {
    const content = readFileSync(join(assetsDir, name))
    app.get(`/assets/${name}`, { config: { needsNoViewer: true } }, (_request, reply) =>
      reply.type(type).header('cache-control', 'max-age=31536000, immutable').send(content),
    )
    return [name, `/assets/${name}?${createHash('sha256').update(content).digest('base64url').slice(0, 10)}`]
  })
  return Object.fromEntries(paths)
}
