import { z } from 'zod'
import { faultActionSchema, faultSchema } from '../faults/faults.ts'
import { clientsSchema, clockSchema, type optionsSchema, settingsPatchSchema } from '../sandboxSettings.ts'
import { bodyMatchSchema, requestMatchSchema } from './requestMatch.ts'

const wordPattern = /^(pending|completed|failed)(?: ([A-Za-z0-9_]{1,20}))?$/
const wordMessage = 'must be pending, completed, failed, failed CODE (as failed E001), or a fault (as {kind: drop})'
const word = z
  .string()
  .refine((text) => wordPattern.test(text), wordMessage)
  .meta({ pattern: wordPattern.source })

const step = z.union([word, faultActionSchema], { error: wordMessage })
export type ScriptStep = z.infer<typeof step>

const recordScript = z
  .strictObject({
    endpoint: z.enum(['submit', 'order']).default('submit').describe('endpoint to which the record is sent'),
    client: z.string().optional().describe('only records of this client'),
    match: bodyMatchSchema,
    answers: z
      .array(faultActionSchema)
      .optional()
      .describe(
        'faults for the first, second … time that such a record is sent; after the last fault, the record is accepted as usual',
      ),
    statuses: z
      .array(step)
      .min(1)
      .refine((steps) => typeof steps.at(-1) === 'string', 'must end with pending, completed or failed')
      .optional()
      .describe('status that the first, second … poll finds; the last one stays'),
  })
  .refine(({ endpoint, statuses = [] }) => endpoint === 'submit' || !statuses.some(isFailure), {
    path: ['statuses'],
    error: 'must not fail an order, because the interface has no failed order (3.2); use the fault unknown_status',
  })
export type RecordScript = z.infer<typeof recordScript>

const whole = () => z.int().min(0)
export const expectationSchema = z
  .strictObject({
    name: z.string().optional().describe('name of the expectation in the answer'),
    requests: requestMatchSchema.describe('which requests are counted'),
    count: whole().optional().describe('exactly this many requests; 0 for none'),
    atLeast: whole().optional().describe('at least this many; 1 if count and atMost are missing'),
    atMost: whole().optional(),
  })
  .refine(({ count, atLeast, atMost }) => count === undefined || (atLeast ?? atMost) === undefined, {
    path: ['count'],
    error: 'cannot be combined with atLeast or atMost',
  })
  .refine(({ atLeast = 0, atMost = atLeast }) => atLeast <= atMost, {
    path: ['atMost'],
    error: 'must not be less than atLeast',
  })
export type Expectation = z.infer<typeof expectationSchema>

export const scenarioSchema = z.strictObject({
  clock: clockSchema.optional(),
  clients: clientsSchema.optional().describe('like SANDBOX_CLIENTS: id, secret and their own live settings'),
  customers: z
    .strictObject({
      unknown: z.array(z.string().min(1)).describe('customer ids that begin with one of these get E001'),
    })
    .optional(),
  settings: settingsPatchSchema
    .optional()
    .describe('settings as at /_sandbox/settings; they win over variables and options'),
  faults: z
    .array(faultSchema)
    .optional()
    .describe('faults active from the start; a request gets the first that matches and is not used up'),
  records: z
    .array(recordScript)
    .optional()
    .describe('scripts for records; a record gets the first script that matches'),
  expectations: z.array(expectationSchema).optional().describe('what POST /_sandbox/verify checks'),
})
export type Scenario = z.infer<typeof scenarioSchema>
export type ScenarioInput = z.input<typeof scenarioSchema>

interface StatusWord {
  status: 'pending' | 'completed' | 'failed'
  errorCode: string | null
}

export function parseScriptedStatus(text: string, defaultErrorCode: string): StatusWord {
  const [, status = 'pending', code = defaultErrorCode] = wordPattern.exec(text) ?? []
  return { status: status as StatusWord['status'], errorCode: status === 'failed' ? code : null }
}

function isFailure(step: unknown): boolean {
  return typeof step === 'string' && step.startsWith('failed')
}

export function scenarioJsonSchemaText(): string {
  const schema = z.toJSONSchema(scenarioSchema, { target: 'draft-7', io: 'input', unrepresentable: 'any' })
  return `${JSON.stringify({ ...schema, title: 'outboxd sandbox scenario' }, null, 2)}\n`
}

export type SandboxOptions = Omit<z.input<typeof optionsSchema>, 'scenario'> & {
  scenario?: string | ScenarioInput | undefined
}
