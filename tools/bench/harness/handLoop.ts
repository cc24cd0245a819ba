import { setTimeout as wait } from 'node:timers/promises'
import type { ServiceRequest } from '../../../src/model/service.ts'
import { readIdInSubmitAnswer, readTransactionStatus } from '../../../src/service/responses.ts'
import { openLoop } from './openLoop.ts'

/**
 * The loop that one would write by hand, with care: a job of pg-boss for each row, inserted in the transaction that marks
 * the row; one handler submits, one polls at a fixed interval until the end. Requests are counted in memory. A 429 or no
 * answer throws, so that pg-boss tries again; after a crash its jobs come back when they expire.
 *
 * argv: seconds between polls
 */
const pollEverySeconds = Number(process.argv[2] ?? 10)
const { config, client, pool, boss, readBody } = openLoop('hand')
const { requests: limit, windowMs } = config.rateLimit

/** When the requests of the last window left. A restart forgets them. */
let sentAtMs: number[] = []

const rowsAtOnce = 100
const lookEveryMs = 500
const retry = { retryLimit: 20, retryDelay: 1, retryBackoff: true, retryDelayMax: 8, expireInSeconds: 60 }

await boss.start()
await boss.createQueue('submit', retry)
await boss.createQueue('poll', retry)
const token = await spend((mayLeave) => client.requestToken(mayLeave))
const accessToken = token?.token?.accessToken ?? ''

process.stdout.write('"event":"running"\n')
const workers = { batchSize: 1, localConcurrency: config.maxInFlight, pollingIntervalSeconds: 0.5 }
await boss.work<{ id: string }>('submit', workers, ([job]) => submit(job?.data.id ?? ''))
await boss.work<Submitted>('poll', workers, ([job]) => poll(job?.data as Submitted))
for (;;) {
  await enqueueRows()
  await wait(lookEveryMs)
}

async function enqueueRows(): Promise<void> {
  const session = await pool.connect()
  try {
    await session.query('begin')
    const { rows } = await session.query<{ id: string }>(
      `update outbox set status = 'queued' where id in (
         select id from outbox where status = 'new' order by id limit $1 for update skip locked
       ) returning id::text`,
      [rowsAtOnce],
    )
    const db = { executeSql: (text: string, values?: unknown[]) => session.query(text, values) }
    await boss.insert(
      'submit',
      rows.map(({ id }) => ({ data: { id } })),
      { db },
    )
    await session.query('commit')
  } finally {
    session.release()
  }
}

interface Submitted {
  id: string
  transactionId: string
}

async function submit(id: string): Promise<void> {
  const json = await send({ endpoint: 'submit', body: await readBody(id), idempotencyKey: id })
  const transactionId = readIdInSubmitAnswer('data', json)
  if (transactionId === null) throw new Error('no transactionId')
  await pool.query(`update outbox set status = 'accepted', transaction_id = $2 where id = $1`, [id, transactionId])
  await boss.send('poll', { id, transactionId }, { startAfter: pollEverySeconds })
}

async function poll({ id, transactionId }: Submitted): Promise<void> {
  const json = await send({ endpoint: 'status', body: transactionId, idempotencyKey: null })
  const status = readTransactionStatus('data', json)?.status
  if (status === 'completed') await pool.query(`update outbox set status = 'completed' where id = $1`, [id])
  else await boss.send('poll', { id, transactionId }, { startAfter: pollEverySeconds })
}

async function send(request: ServiceRequest): Promise<unknown> {
  const answer = await spend((mayLeave) => client.send(request, accessToken, mayLeave))
  if (answer?.kind !== 'response' || answer.status >= 400) throw new Error('no usable answer')
  return answer.json
}

/** Waits until fewer than the limit were sent within the last window, and then sends. */
async function spend<T>(request: (mayLeave: () => boolean) => Promise<T>): Promise<T> {
  for (;;) {
    const nowMs = performance.now()
    sentAtMs = sentAtMs.filter((atMs) => atMs > nowMs - windowMs)
    if (sentAtMs.length < limit) break
    await wait((sentAtMs[0] ?? nowMs) + windowMs - nowMs + 1)
  }
  sentAtMs.push(performance.now())
  return request(() => true)
}
