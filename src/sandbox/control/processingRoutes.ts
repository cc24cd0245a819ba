import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import type { SandboxParts } from '../exchange.ts'
import {
  changeProcessing,
  findOwningClients,
  type ProcessedRecordRef,
  type ProcessingChange,
} from '../processing/processing.ts'
import { errorCodeSchema } from '../sandboxSettings.ts'
import { parseJsonBody, sendRefusal } from './controlAnswers.ts'

const patchSchema = z
  .strictObject({
    finish: z.enum(['completed', 'failed']).optional(),
    errorCode: errorCodeSchema.optional(),
    hold: z.boolean().optional(), // true keeps the record pending until a request sends false, or finish
  })
  .refine(({ finish, hold }) => (finish === undefined) !== (hold === undefined), 'either finish or hold must be given')
  .refine(({ finish, errorCode }) => errorCode === undefined || finish === 'failed', {
    path: ['errorCode'],
    error: 'is allowed only with "finish":"failed"',
  })
type Patch = z.infer<typeof patchSchema>

const patches = {
  transaction: patchSchema,
  order: patchSchema.refine(({ finish }) => finish !== 'failed', {
    path: ['finish'],
    error: 'must be "completed", because orders cannot fail in the interface (3.2); use the fault unknown_status',
  }),
}

/** Registers the PATCH routes. They change only pending records, because a client may have read how others ended. */
export function registerProcessingRoutes(
  app: FastifyInstance,
  parts: SandboxParts,
  clientOf: (query: unknown) => string | null,
): void {
  for (const kind of ['transaction', 'order'] as const)
    app.patch<{ Params: { id: string } }>(`/${kind}s/:id`, ({ params: { id }, query, body }, reply) => {
      const patch = patches[kind].parse(parseJsonBody(body))
      return parts.oneAtATime(() => changeOne(parts, reply, { of: kind, id, client: clientOf(query) }, patch))
    })
}

/** If `client` is null, only one client may have a record with this id. */
type Asked = Pick<ProcessedRecordRef, 'of' | 'id'> & { client: string | null }

async function changeOne(parts: SandboxParts, reply: FastifyReply, { of, id, client }: Asked, patch: Patch) {
  const owners = (await findOwningClients(parts.pool, of, id)).filter((each) => client === null || each === client)
  const [owner] = owners
  if (owner === undefined) return sendRefusal(reply, 404, `There is no ${of} ${id}.`)
  if (owners.length > 1) {
    const detail = `The ${of} ${id} belongs to several clients: ${owners.join(', ')}. Choose one with ?client=ID.`
    return sendRefusal(reply, 409, detail)
  }
  const code = patch.finish === 'failed' ? (patch.errorCode ?? parts.liveSettingsOf(owner).failureCode) : null
  const changed = await changeProcessing(parts, { of, id, client: owner }, processingChange(code, patch.hold))
  if (changed.kind === 'changed') return changed.row
  const detail = `The ${of} ${id} was ${changed.outcome} at ${changed.at}. A finished ${of} cannot change.`
  return sendRefusal(reply, 409, detail)
}

function processingChange(errorCode: string | null, hold: boolean | undefined): ProcessingChange {
  if (hold === undefined) return { kind: 'finish', errorCode }
  return { kind: hold ? 'hold' : 'let go' }
}
