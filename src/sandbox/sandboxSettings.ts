import { z } from 'zod'
import { isAddressOrNetwork, isLoopbackName } from './gate/addresses.ts'
import {
  choiceSetting,
  flagSetting,
  interfaceGapSettings,
  serverWideSettings,
  wholeNumberSetting,
} from './interfaceGapSettings.ts'
import { distributionFormsClause, parseDistribution } from './processing/distribution.ts'
import { SettingsWrong } from './settingsWrong.ts'

export const windowSecondsSchema = z
  .number()
  .min(0.001, 'must be at least 0.001: a millisecond')
  .max(86_400, 'must be at most 86400: a day')

export const errorCodeSchema = z
  .string()
  .regex(/^[A-Za-z0-9_]{1,20}$/, 'must be 1 to 20 letters, digits or underscores')

export const liveSettingsSchema = z.strictObject({
  rateLimitRequests: wholeNumberSetting({ min: 1, max: 1_000_000, byDefault: 100 }, 'API calls per window'),
  rateLimitWindowSeconds: windowSecondsSchema.default(60).describe('length of the window in seconds, from 0.001'),
  ledgerRows: wholeNumberSetting(
    { min: 1000, max: 1_000_000_000, byDefault: 1_000_000 },
    'how many requests the table sandbox.ledger keeps',
  ),
  allowedAddresses: z
    .array(
      z.string().refine(isAddressOrNetwork, {
        error: ({ input }) => `${input} is not an address or a network such as 10.0.0.0/8`,
      }),
    )
    .min(1, 'must have at least one address')
    .default(['127.0.0.1', '::1'])
    .describe('addresses and networks (CIDR) that may call the API'),
  tokenLifetimeSeconds: wholeNumberSetting({ min: 1, max: 31_536_000, byDefault: 3600 }, 'validity of new tokens'),
  unknownCustomers: z
    .array(z.string().min(1))
    .default(['UNKNOWN', 'X', '00000000-0000-'])
    .describe('customer ids that begin with one of these get E001'),
  processingTime: z
    .string()
    .refine((text) => parseDistribution(text) !== undefined, `must be ${distributionFormsClause}, in seconds`)
    .default('lognormal:2:0.5')
    .describe(`seconds that processing takes: ${distributionFormsClause}`),
  failureShare: z.number().min(0).max(1).default(0).describe('share of transactions that fail'),
  failureCode: errorCodeSchema.default('E001').describe('errorCode of failed transactions'),
  seed: z
    .int('must be a whole number, 0 or more')
    .min(0)
    .nullable()
    .default(null)
    .describe('makes ids and processing times the same in every run'),
  down: flagSetting(false, 'answer every API call with E003'),
  ...interfaceGapSettings,
})

export type LiveSettings = z.infer<typeof liveSettingsSchema>

export const settingsPatchSchema = z.strictObject(
  Object.fromEntries(
    Object.entries(liveSettingsSchema.shape).map(([key, field]) => [key, field.unwrap().optional()]),
  ) as unknown as { [K in keyof typeof liveSettingsSchema.shape]: z.ZodOptional<z.ZodType<LiveSettings[K]>> },
)
export type SettingsPatch = Partial<LiveSettings>

export const clientPatchSchema = settingsPatchSchema.omit({
  ...(Object.fromEntries(Object.keys(serverWideSettings).map((name) => [name, true])) as Record<
    keyof typeof serverWideSettings,
    true
  >),
  seed: true,
  ledgerRows: true,
})

const clientSchema = clientPatchSchema.extend({
  id: z.string().min(1).max(255),
  secret: z.string().min(1),
})
export type ClientSettings = z.infer<typeof clientSchema>

export const clientsSchema = z
  .array(clientSchema, 'must be a list, as JSON or YAML: [{"id": "ci-1", "secret": "…"}, …]')
  .min(1)
  .refine((clients) => new Set(clients.map(({ id }) => id)).size === clients.length, 'two clients have the same id')

const clockMessage = 'must be system or a time such as 2026-01-01T00:00:00Z'
export const clockSchema = z.union([z.literal('system'), z.iso.datetime({ offset: true, error: clockMessage })], {
  error: clockMessage,
})

const defaultSecret = 'sandbox-secret'

const fixedSettingsSchema = z.strictObject({
  databaseUrl: z
    .string()
    .min(1)
    .optional()
    .describe('Postgres for the schemas sandbox and sandbox_queue, if not embedded'),
  embedded: flagSetting(false, 'start a PostgreSQL whose data are removed at the end'),
  dataDir: z.string().min(1).optional().describe('like embedded, but keep the data in this folder'),
  host: z.string().min(1).default('127.0.0.1').describe('address to listen on'),
  port: wholeNumberSetting({ min: 0, max: 65_535, byDefault: 8080 }, 'port to listen on; 0: any free one'),
  clientId: z.string().min(1).default('sandbox').describe('client_id to accept'),
  clientSecret: z.string().min(1).default(defaultSecret).describe('client_secret to accept'),
  clients: clientsSchema.optional().describe('JSON or YAML list: id, secret, live settings'),
  insecureDefaults: flagSetting(false, 'allow a host beyond loopback although the default secret is public'),
  controlToken: z
    .string()
    .regex(/^\S{16,}$/, 'must be one word of at least 16 characters, so that it cannot be guessed')
    .optional()
    .describe('token that requests to /_sandbox/ must send; 16 characters or more'),
  bodyLimitBytes: wholeNumberSetting(
    { min: 1024, max: 67_108_864, byDefault: 262_144 },
    'largest body; a larger one gets 413',
  ),
  clock: clockSchema.default('system').describe('system, or a fixed time that only /_sandbox/clock moves'),
  startWaitSeconds: z
    .number()
    .min(0)
    .max(3600)
    .default(5)
    .describe('how long the start waits for another sandbox to release the database'),
  requestTimeoutSeconds: wholeNumberSetting(
    { min: 1, max: 3600, byDefault: 30 },
    'a request that takes longer to arrive gets 408',
  ),
  connectionsMax: wholeNumberSetting({ min: 1, max: 65_535, byDefault: 2000 }, 'most open connections'),
  scenario: z
    .union([z.string().min(1), z.custom<object>((value) => typeof value === 'object' && value !== null)], {
      error: 'must be the name of a file',
    })
    .optional()
    .describe('YAML file with a scenario (docs/start/sandbox.md)'),
  synchronousCommit: choiceSetting(
    ['on', 'off'],
    'off is faster, but a crash of Postgres can lose the requests of the last second',
  ),
})

export const optionsSchema = z
  .strictObject({ ...fixedSettingsSchema.shape, ...liveSettingsSchema.shape })
  .refine(
    ({ host, insecureDefaults, ...credentials }) =>
      insecureDefaults ||
      isLoopbackName(host) ||
      listClientSettings(credentials).every(({ secret }) => secret !== defaultSecret),
    {
      path: ['host'],
      error: ({ input }) =>
        `other machines can reach ${(input as { host: string }).host}, but the client secret is the public default: set SANDBOX_CLIENT_SECRET, or allow the default with --insecure-defaults`,
    },
  )
  .refine(({ databaseUrl, embedded, dataDir }) => databaseUrl ?? dataDir ?? embedded, {
    path: ['databaseUrl'],
    error: 'set databaseUrl, embedded or dataDir',
    when: () => true, // report this also if other fields are wrong
  })

export function listClientSettings({ clients, clientId, clientSecret }: Credentials): readonly ClientSettings[] {
  return clients ?? [{ id: clientId, secret: clientSecret }]
}
type Credentials = Pick<z.infer<typeof fixedSettingsSchema>, 'clients' | 'clientId' | 'clientSecret'>

export type SandboxSettings = z.infer<typeof optionsSchema>

export type DatabasePlace = Pick<SandboxSettings, 'databaseUrl' | 'embedded' | 'dataDir'>

/** True even if SANDBOX_DATABASE_URL is set. */
export function isEmbedded({ embedded, dataDir }: DatabasePlace): boolean {
  return embedded || dataDir !== undefined
}

/** @throws SettingsWrong */
export function parseSettings<S extends z.ZodType>(schema: S, given: unknown, pathPrefix: string[] = []): z.output<S> {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  throw new SettingsWrong(
    parsed.error.issues.map(({ path, message }) =>
      [[...pathPrefix, ...path].join('.'), message].filter(Boolean).join(': '),
    ),
  )
}
