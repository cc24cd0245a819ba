import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Parts } from '../exchange.ts'
import {
  changeProcessing,
  findOwningClients,
  type ProcessedRecordRef,
  type ProcessingChange,
} from '../processing/processing.ts'
import { errorCodeSchema } from '../sandboxSettings.ts'
import { readJson, readQuery, sendRefusal } from './controlAnswers.ts'

const hold = z.boolean().optional().describe('true keeps it pending until false or finish')

const transactionPatch = z
  .strictObject({
    finish: z.enum(['completed', 'failed']).optional().describe('ends it now'),
    errorCode: errorCodeSchema.optional(),
    hold,
  })
  .refine(isOne, 'either finish or hold must be given')
  .refine(({ finish, errorCode }) => errorCode === undefined || finish === 'failed', {
    path: ['errorCode'],
    error: 'is allowed only with "finish":"failed"',
  })

const never = 'must be "completed", because the interface has no failed order (3.2); use the fault unknown_status'
const orderPatch = z
  .strictObject({ finish: z.literal('completed', never).optional(), hold })
  .refine(isOne, 'either finish or hold must be given')

const idParameter = z.object({ id: z.string() })

export function processingRoutes(app: FastifyInstance, parts: Parts): void {
  app.patch('/transactions/:id', async ({ params, query, body }, reply) => {
    const { finish, errorCode, hold } = transactionPatch.parse(readJson(body))
    return changeOne(parts, reply, { of: 'transaction', ...asked(parts, params, query) }, (client) =>
      processingChange(finish === 'failed' ? (errorCode ?? parts.live(client).failureCode) : null, hold),
    )
  })
  app.patch('/orders/:id', async ({ params, query, body }, reply) => {
    const { hold } = orderPatch.parse(readJson(body))
    return changeOne(parts, reply, { of: 'order', ...asked(parts, params, query) }, () => processingChange(null, hold))
  })
}

function asked({ clients }: Parts, params: unknown, query: unknown) {
  return { ...idParameter.parse(params), ...readQuery(clients, query, {}) }
}

interface Asked extends Omit<ProcessedRecordRef, 'client'> {
  /** Null: the only client that has a record of this id. */
  client: string | null
}

/** Changes only what is pending, because a client may have read the end. */
async function changeOne(
  parts: Parts,
  reply: FastifyReply,
  { of, id, client }: Asked,
  change: (client: string) => ProcessingChange,
) {
  const owners = (await findOwningClients(parts.pool, of, id)).filter((each) => client === null || each === client)
  const [owner] = owners
  if (owner === undefined) return sendRefusal(reply, 404, `There is no ${of} ${id}.`)
  if (owners.length > 1) {
    const detail = `The ${of} ${id} belongs to several clients: ${owners.join(', ')}. Choose one with ?client=ID.`
    return sendRefusal(reply, 409, detail)
  }
  const changed = await changeProcessing(parts, { of, id, client: owner }, change(owner))
  if (changed.kind === 'changed') return changed.row
  if (changed.kind === 'unknown') return sendRefusal(reply, 404, `There is no ${of} ${id}.`)
  const detail = `The ${of} ${id} was ${changed.outcome} at ${changed.at}. A finished one cannot change.`
  return sendRefusal(reply, 409, detail)
}

function isOne({ finish, hold }: { finish?: unknown; hold?: unknown }): boolean {
  return (finish === undefined) !== (hold === undefined)
}

function processingChange(errorCode: string | null, hold: boolean | undefined): ProcessingChange {
  if (hold === undefined) return { kind: 'finish', errorCode }
  return { kind: hold ? 'hold' : 'let go' }
}
