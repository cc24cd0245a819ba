import { createHash } from 'node:crypto'
import { type HtmlSafeString, unsafeHtml } from '@prairielearn/html'
import type { FastifyInstance } from 'fastify'
import { readPeriodStatistics } from '../../ledger/periods.ts'
import { sendPage } from '../html/layout.ts'
import { type ConsoleParts, nowVersionPath } from '../parts.ts'
import { pauseRoutes } from '../pause/routes.ts'
import { historyRanges, historySection, type Range, rangeSpans, toPlottedHistory } from './historyHtml.ts'
import { type LiveParts, type NowView, renderLiveParts, renderNow } from './nowHtml.ts'
import { createNowReader } from './readNow.ts'
import { createOutboxReader, shareRead } from './sharedReads.ts'

const viewAgeMs = 1_000

const historyAgeMs = 15_000

export function nowRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const { databases, clock } = parts
  const readOutbox = createOutboxReader(parts)
  const readAnew = () => {
    const readView = createNowReader(parts, readOutbox)
    return shareRead(clock, viewAgeMs, async () => rendered(await readView()))
  }
  let readPage = readAnew()
  const histories = Object.fromEntries(
    historyRanges.map((range) => [range, shareRead(clock, historyAgeMs, () => readHistory(range))]),
  ) as Record<Range, () => Promise<HtmlSafeString>>

  async function readHistory(range: Range): Promise<HtmlSafeString> {
    const { span, withinMs } = rangeSpans[range]
    const periods = await readPeriodStatistics((await databases()).ledger, span, withinMs)
    return unsafeHtml(historySection(toPlottedHistory(range, periods)).toString())
  }

  app.get(nowVersionPath, { config: { isPolled: true } }, async () => ({ version: (await readPage()).version }))
  app.get<Asked>('/', async ({ viewer, query }, reply) => {
    const [page, history] = await Promise.all([readPage(), histories[rangeOf(query.range)]()])
    return sendPage(reply, renderNow({ ...page, history, viewer }))
  })
  pauseRoutes(app, parts, () => {
    readPage = readAnew()
  })
}

interface Asked {
  Querystring: { range?: unknown }
}

const rangeOf = (text: unknown): Range => historyRanges.find((range) => range === text) ?? 'hour'

function rendered(view: NowView): { parts: LiveParts; version: string } {
  const parts = renderLiveParts(view)
  const version = createHash('sha256').update(Object.values(parts).join()).digest('base64url')
  return { parts, version }
}
