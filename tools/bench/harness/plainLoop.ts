import { readIdInSubmitAnswer, readTransactionStatus } from '../../../src/service/responses.ts'
import { openLoop } from './openLoop.ts'

/**
 * What outboxd is compared with: a plain loop of pg-boss `work()` handlers, doing the same to the same outbox with the
 * same mapping and the same HTTP client, and none of the guarantees (no ledger, no fence, no budget, no order by key).
 * One job a record submits, one asks, and each handler writes the outbox row. The jobs are there before it starts.
 *
 * argv: `one` (a job at a time in each of MAX_IN_FLIGHT workers) or `batch` (batches, fetched without a pause while full).
 */
const mode = process.argv[2] === 'batch' ? 'batch' : 'one'
const { config, client, pool, boss, readBody } = openLoop('plain')

const batchSize = 64
const pollAfterSeconds = 0.25
const options = {
  one: { batchSize: 1, localConcurrency: config.maxInFlight, pollingIntervalSeconds: 0.5 },
  batch: {
    batchSize,
    localConcurrency: config.maxInFlight / batchSize,
    pollingIntervalSeconds: 0.5,
    burstWhenBatchFull: true,
  },
}[mode]

await boss.start()
await boss.createQueue('submit')
await boss.createQueue('ask')
const { rows: waiting } = await pool.query<{ id: string }>(`select id::text from outbox where status = 'new'`)
for (let i = 0; i < waiting.length; i += 1000)
  await boss.insert(
    'submit',
    waiting.slice(i, i + 1000).map(({ id }) => ({ data: { id } })),
  )
const always = () => true
const asked = await client.requestToken(always)
const accessToken = asked?.token?.accessToken ?? ''

process.stdout.write('"event":"running"\n')
await boss.work<{ id: string }>('submit', options, (jobs) => Promise.all(jobs.map(({ data }) => submit(data.id))))
await boss.work<Asked>('ask', options, (jobs) => Promise.all(jobs.map(({ data }) => ask(data))))

interface Asked {
  id: string
  transactionId: string
}

async function submit(id: string): Promise<void> {
  const answer = await client.send(
    { endpoint: 'submit', body: await readBody(id), idempotencyKey: null },
    accessToken,
    always,
  )
  const transactionId = readIdInSubmitAnswer('data', answer?.kind === 'response' ? answer.json : null)
  if (transactionId === null) throw new Error('no transactionId')
  await pool.query(`update outbox set status = 'accepted', transaction_id = $2, updated_at = now() where id = $1`, [
    id,
    transactionId,
  ])
  await boss.send('ask', { id, transactionId }, { startAfter: pollAfterSeconds })
}

async function ask({ id, transactionId }: Asked): Promise<void> {
  const answer = await client.send(
    { endpoint: 'status', body: transactionId, idempotencyKey: null },
    accessToken,
    always,
  )
  const status = readTransactionStatus('data', answer?.kind === 'response' ? answer.json : null)?.status
  if (status === 'completed')
    await pool.query(`update outbox set status = 'completed', updated_at = now() where id = $1`, [id])
  else await boss.send('ask', { id, transactionId }, { startAfter: pollAfterSeconds })
}
