import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { systemClock } from '../../../src/clock.ts'
import { readConfig } from '../../../src/config.ts'
import { loadMappings } from '../../../src/mapping/loadMappings.ts'
import { mapOutboxRecord } from '../../../src/mapping/mapRecord.ts'
import type { ServiceRequest } from '../../../src/model/service.ts'
import { createServiceClient } from '../../../src/service/client.ts'
import { readIdInSubmitAnswer, readTransactionStatus } from '../../../src/service/responses.ts'

/**
 * What outboxd is compared with: a plain loop of pg-boss `work()` handlers, doing the same to the same outbox with the
 * same mapping and the same HTTP client, and none of the guarantees (no ledger, no fence, no budget, no order by key).
 * One job a record submits, one asks, and each handler writes the outbox row. The jobs are there before it starts, and
 * are fetched in batches, without a pause while these are full.
 */
const config = readConfig(process.env)
const mappings = loadMappings(config.mappingsDir)
const client = createServiceClient({
  service: config.service,
  credentials: () => config.service,
  maxInFlight: config.maxInFlight,
  clock: systemClock,
})
const pool = new pg.Pool({ connectionString: config.databaseUrl, max: 12 })
const boss = new PgBoss({ connectionString: config.databaseUrl, schema: 'plain', max: 12, schedule: false })
boss.on('error', (error) => process.stderr.write(`${error}\n`))

const batchSize = 64
const pollAfterSeconds = 0.25
const options = {
  batchSize,
  localConcurrency: config.maxInFlight / batchSize,
  pollingIntervalSeconds: 0.5,
  burstWhenBatchFull: true,
}

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
  const json = await send({ endpoint: 'submit', body: await readBody(id), idempotencyKey: null })
  const transactionId = readIdInSubmitAnswer('data', json)
  if (transactionId === null) throw new Error('no transactionId')
  await pool.query(`update outbox set status = 'accepted', transaction_id = $2, updated_at = now() where id = $1`, [
    id,
    transactionId,
  ])
  await boss.send('ask', { id, transactionId }, { startAfter: pollAfterSeconds })
}

async function ask({ id, transactionId }: Asked): Promise<void> {
  const json = await send({ endpoint: 'status', body: transactionId, idempotencyKey: null })
  if (readTransactionStatus('data', json)?.status === 'completed')
    await pool.query(`update outbox set status = 'completed', updated_at = now() where id = $1`, [id])
  else await boss.send('ask', { id, transactionId }, { startAfter: pollAfterSeconds })
}

async function send(request: ServiceRequest): Promise<unknown> {
  const answer = await client.send(request, accessToken, always)
  return answer?.kind === 'response' ? answer.json : null
}

/** Maps an outbox row to the request's body. */
async function readBody(id: string): Promise<string> {
  const { rows } = await pool.query('select type, key, payload::text as payload from outbox where id = $1', [id])
  const record = { ...rows[0], outboxId: id, unreadable: null, createdAt: null }
  const mapped = mapOutboxRecord(mappings, record, id)
  if (mapped.kind !== 'mapped') throw new Error(mapped.reason)
  return mapped.body
}
