import { validateHeaderName, validateHeaderValue } from 'node:http'
import type pg from 'pg'
import { z } from 'zod'
import { endpoints } from '../endpoints/endpoints.ts'
import type { SeededRandom } from '../processing/seededRandom.ts'

const endpointName = z.enum(endpoints)

const times = z
  .int()
  .min(1)
  .optional()
  .describe('how many requests get the fault; if missing, all until the fault is removed')
const delayMs = z.int().min(0).max(3_600_000).default(0).describe('milliseconds by which the sandbox delays the answer')
const which = {
  endpoint: z
    .union([endpointName, z.array(endpointName).min(1)])
    .optional()
    .describe('endpoints that get the fault; if missing, the four of the API but not token'),
  times,
  share: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe('share of these requests that get the fault; the setting seed decides which'),
  bodyContains: z.string().min(1).optional().describe('only requests whose body contains this text'),
  client: z.string().min(1).optional().describe('only requests of this client, by its id'),
  pathContains: z
    .string()
    .min(1)
    .optional()
    .describe('only requests whose path contains this text, such as a transaction’s id'),
}
const when = (fallback: 'before' | 'after') =>
  z
    .enum(['before', 'after'])
    .default(fallback)
    .describe('before: the request is not applied; after: it is applied first')
const headerText = z
  .string()
  .refine((text) => passes(() => validateHeaderValue('x', text)), 'cannot be sent in a header')
const headerName = z.string().refine((name) => passes(() => validateHeaderName(name)), 'is not a header name')
const isOfBody = (name: string) => /^(content-length|transfer-encoding)$/i.test(name)

function passes(check: () => void): boolean {
  try {
    check()
    return true
  } catch {
    return false
  }
}

const answer = {
  status: z.int().min(200).max(599),
  code: z.string().optional().describe('an error code for the problem document'),
  body: z.unknown().optional().describe('body instead of the problem document; text is sent as it is'),
  contentType: headerText.optional(),
  headers: z
    .record(headerName, headerText)
    .refine((headers) => !Object.keys(headers).some(isOfBody), 'must not have content-length or transfer-encoding')
    .default({}),
}

/** @param which fields that select the requests */
function kindsWith<T extends z.ZodRawShape>(which: T) {
  const common = { ...which, delayMs }
  return z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('answer'), ...answer, when: when('before'), ...common }),
    z.strictObject({
      kind: z.literal('redirect'),
      status: z.int().min(300).max(308).default(307),
      location: headerText
        .default('http://127.0.0.1:9/')
        .describe('with when: after, {id} becomes the id of the new transaction or order'),
      when: when('before'),
      ...common,
    }),
    z.strictObject({
      kind: z.literal('delay'),
      when: when('after'),
      ...which,
      delayMs: z
        .int()
        .min(1)
        .max(3_600_000)
        .describe('when before: the request is applied late; after: it is applied at once and answered late'),
    }),
    z.strictObject({ kind: z.literal('drop'), when: when('before'), ...common }),
    z.strictObject({ kind: z.literal('garbage'), ...common, body: z.string().default('{"transactionId": "cut o') }),
    z.strictObject({
      kind: z.literal('oversized'),
      ...common,
      bytes: z.int().min(1).max(268_435_456).default(10_000_000),
    }),
    z.strictObject({ kind: z.literal('gzip'), ...common, bytes: z.int().min(0).max(268_435_456).default(0) }),
    z.strictObject({ kind: z.literal('drip'), ...common, intervalMs: z.int().min(1).max(60_000).default(1000) }),
    z.strictObject({ kind: z.literal('missing_id'), ...common }),
    z.strictObject({ kind: z.literal('wrong_id'), ...common, id: z.string().optional() }),
    z.strictObject({ kind: z.literal('unknown_status'), ...common, value: z.string().default('archived') }),
  ])
}

export const faultSchema = kindsWith(which)

/** A fault in a record script, which selects the requests. */
export const faultActionSchema = kindsWith({
  times: times.describe('how often in a row; if missing, once'),
})
export type FaultAction = z.infer<typeof faultActionSchema>

type FaultSpec = z.infer<typeof faultSchema>

export interface Fault {
  id: number
  spec: FaultSpec
  left: number | undefined
  hits: number
}

export interface FaultStore {
  add(spec: FaultSpec): Promise<Fault>
  /** Returns how many were removed. */
  remove(id: number): Promise<number>
  /** @param client null for all clients */
  removeAll(client: string | null): Promise<number>
  list(client: string | null): Fault[]
  chooseAndCount(request: FaultRequest): Fault | undefined
}

/** The statement that writes a request to the request log also counts the fault's hit. */
export async function openFaultStore(pool: pg.Pool, random: SeededRandom): Promise<FaultStore> {
  const { rows } = await pool.query<{ id: string; spec: FaultSpec; hits: number }>(
    'select id, spec, hits::integer as hits from sandbox.faults order by faults.id',
  )
  let faults = rows.map(({ id, spec, hits }) => armed(Number(id), spec, hits))
  const ofClient = (client: string | null) => faults.filter(({ spec }) => client === null || spec.client === client)
  const remove = async (removed: readonly Fault[]): Promise<number> => {
    await pool.query('delete from sandbox.faults where id = any($1)', [removed.map(({ id }) => id)])
    faults = faults.filter((fault) => !removed.includes(fault))
    return removed.length
  }
  return {
    async add(spec) {
      const { rows } = await pool.query<{ id: string }>('insert into sandbox.faults (spec) values ($1) returning id', [
        JSON.stringify(spec),
      ])
      const fault = armed(Number(rows[0]?.id), spec, 0)
      faults.push(fault)
      return fault
    },
    remove: (id) => remove(faults.filter((fault) => fault.id === id)),
    removeAll: (client) => remove(ofClient(client)),
    list: ofClient,
    chooseAndCount(request) {
      const isDrawn = ({ spec }: Fault) => spec.share === 1 || random.faultFraction(request.client) < spec.share
      const fault = faults.find((each) => concerns(each, request) && isDrawn(each))
      if (fault === undefined) return undefined
      fault.hits += 1
      if (fault.left !== undefined) fault.left -= 1
      return fault
    },
  }
}

function armed(id: number, spec: FaultSpec, hits: number): Fault {
  return { id, spec, hits, left: spec.times === undefined ? undefined : Math.max(0, spec.times - hits) }
}

type FaultRequest = Record<'endpoint' | 'body' | 'path' | 'client', string>

function concerns({ spec, left }: Fault, { endpoint, body, path, client }: FaultRequest): boolean {
  if (left === 0 || endpoint === 'other') return false
  if (spec.endpoint === undefined && endpoint === 'token') return false
  if (spec.endpoint !== undefined && ![spec.endpoint].flat().includes(endpoint as (typeof endpoints)[number]))
    return false
  if (spec.client !== undefined && spec.client !== client) return false
  if (spec.pathContains !== undefined && !path.includes(spec.pathContains)) return false
  return spec.bodyContains === undefined || body.includes(spec.bodyContains)
}
