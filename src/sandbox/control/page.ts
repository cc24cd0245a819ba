import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import type { CurrentSettings } from '../currentSettings.ts'
import type { Parts } from '../exchange.ts'
import { readQuery } from './controlAnswers.ts'
import { renderPage } from './pageHtml.ts'
import { readNewestRequests, readNewestTransactions } from './pageQueries.ts'

const assetsDir = join(import.meta.dirname, '..', '..', '..', 'assets')
const assets = { 'sandbox.css': 'text/css; charset=utf-8', 'sandbox.js': 'text/javascript; charset=utf-8' }

/** Nothing comes from elsewhere, nothing stands in the page that runs, and no page may frame it. */
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

interface PageParts {
  parts: Parts
  pool: pg.Pool
  settings: CurrentSettings
}

/** /_sandbox/ itself: what the sandbox sees and is told, for people. */
export function pageRoutes(app: FastifyInstance, { parts, pool, settings }: PageParts): void {
  app.get('/', async (request, reply) => {
    const { client } = readQuery(parts.clients, request.query, {})
    await parts.journal.idle()
    const [requests, transactions] = await Promise.all([
      readNewestRequests(pool, client),
      readNewestTransactions(pool, client),
    ])
    const page = renderPage({
      host: request.host,
      client,
      clients: parts.clients.ids,
      clock: parts.clock.read(),
      requests,
      transactions,
      faults: parts.faults.list(client),
      settings: settings.of(client),
      changed: Object.keys(settings.changed(client)),
    })
    return reply.headers(pageHeaders).type('text/html; charset=utf-8').send(page)
  })
  for (const [name, type] of Object.entries(assets)) {
    const text = readFileSync(join(assetsDir, name), 'utf8')
    app.get(`/assets/${name}`, async (_request, reply) => reply.headers(pageHeaders).type(type).send(text))
  }
}
