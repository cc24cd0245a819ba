import { z } from 'zod'
import { isAddressOrNetwork, isLoopbackName } from './gate/addresses.ts'
import { flag, notShownSettings, oneOf, serverWide, whole } from './notShownSettings.ts'
import { distributionForms, parseDistribution } from './processing/distribution.ts'

export const windowSecondsSchema = z
  .number()
  .min(0.001, 'must be at least 0.001: a millisecond')
  .max(86_400, 'must be at most 86400: a day')

export const errorCodeSchema = z
  .string()
  .regex(/^[A-Za-z0-9_]{1,20}$/, 'must be 1 to 20 letters, digits or underscores')

export const liveSettingsSchema = z.strictObject({
  rateLimitRequests: whole({ min: 1, max: 1_000_000, byDefault: 100 }, 'API calls of a client allowed per window'),
  rateLimitWindowSeconds: windowSecondsSchema.default(60).describe('length of the window; fractions work, from 0.001'),
  ledgerRows: whole(
    { min: 1000, max: 1_000_000_000, byDefault: 1_000_000 },
    'requests that the ledger keeps; older ones are deleted',
  ),
  allowedAddresses: z
    .array(
      z.string().refine(isAddressOrNetwork, {
        error: ({ input }) => `${input} is not an address or a network such as 10.0.0.0/8`,
      }),
    )
    .min(1, 'must have at least one address')
    .default(['127.0.0.1', '::1'])
    .describe('addresses and networks (CIDR) that may call the API; others get addressStatus'),
  tokenLifetimeSeconds: whole({ min: 1, max: 31_536_000, byDefault: 3600 }, 'how long new tokens are valid'),
  unknownCustomers: z
    .array(z.string().min(1))
    .default(['UNKNOWN', 'X', '00000000-0000-'])
    .describe('customer ids that begin with one of these get E001; all others are known'),
  processingTime: z
    .string()
    .refine((text) => parseDistribution(text) !== undefined, `must be ${distributionForms}, in seconds`)
    .default('lognormal:2:0.5')
    .describe(`how long processing takes: ${distributionForms}`),
  failureShare: z.number().min(0).max(1).default(0).describe('share of transactions that end failed'),
  failureCode: errorCodeSchema.default('E001').describe('errorCode of these failed transactions'),
  seed: z
    .int('must be a whole number, 0 or more')
    .min(0)
    .nullable()
    .default(null)
    .describe('fixes ids and everything else that is random; without it, ids are random'),
  down: flag(false, 'answer every API call with E003'),
  ...notShownSettings,
})

export type LiveSettings = z.infer<typeof liveSettingsSchema>

export const settingsPatchSchema = z.strictObject(
  Object.fromEntries(
    Object.entries(liveSettingsSchema.shape).map(([key, field]) => [key, field.unwrap().optional()]),
  ) as unknown as { [K in keyof typeof liveSettingsSchema.shape]: z.ZodOptional<z.ZodType<LiveSettings[K]>> },
)
export type SettingsPatch = Partial<LiveSettings>

export const clientPatchSchema = settingsPatchSchema.omit({
  ...(Object.fromEntries(Object.keys(serverWide).map((name) => [name, true])) as Record<keyof typeof serverWide, true>),
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
  .refine((clients) => new Set(clients.map(({ id }) => id)).size === clients.length, 'has an id twice')

const clockMessage = 'must be system or a time such as 2026-01-01T00:00:00Z'
export const clockSchema = z.union([z.literal('system'), z.iso.datetime({ offset: true, error: clockMessage })], {
  error: clockMessage,
})

export const defaultSecret = 'sandbox-secret'

const fixedSettingsSchema = z.strictObject({
  databaseUrl: z
    .string()
    .min(1)
    .optional()
    .describe('Postgres for the schemas sandbox and sandbox_queue; required without embedded and dataDir'),
  embedded: flag(false, 'start a PostgreSQL in a temporary folder, which is removed at the end'),
  dataDir: z.string().min(1).optional().describe('like embedded, but keep the data in this folder for the next start'),
  host: z.string().min(1).default('127.0.0.1').describe('address to listen on'),
  port: whole({ min: 0, max: 65_535, byDefault: 8080 }, 'port to listen on; 0 takes any free one'),
  clientId: z.string().min(1).default('sandbox').describe('the test credentials: client_id'),
  clientSecret: z.string().min(1).default(defaultSecret).describe('the test credentials: client_secret'),
  clients: clientsSchema
    .optional()
    .describe('several clients: a list, as JSON or YAML, of id, secret and their own live settings'),
  insecureDefaults: flag(false, 'listen beyond loopback although the client secret is public'),
  controlToken: z
    .string()
    .regex(/^\S{16,}$/, 'must be one word of at least 16 characters, so that it cannot be guessed')
    .optional()
    .describe(
      'lets requests from any host use /_sandbox/ with this token, and every request then needs it; at least 16 characters',
    ),
  bodyLimitBytes: whole({ min: 1024, max: 67_108_864, byDefault: 262_144 }, 'a larger request body gets 413'),
  clock: clockSchema.default('system').describe('system, or a fixed time that only /_sandbox/clock moves on'),
  startWaitSeconds: z
    .number()
    .min(0)
    .max(3600)
    .default(5)
    .describe('how long to wait at the start until another sandbox releases the database'),
  requestTimeoutSeconds: whole(
    { min: 1, max: 3600, byDefault: 30 },
    'how long a request may take to arrive with its body; after that it gets 408 and its connection is closed',
  ),
  connectionsMax: whole({ min: 1, max: 65_535, byDefault: 2000 }, 'open connections; a further one is closed at once'),
  scenario: z
    .union([z.string().min(1), z.custom<object>((value) => typeof value === 'object' && value !== null)], {
      error: 'must be the name of a file',
    })
    .optional()
    .describe('a file (YAML) with settings, faults, scripts for records and expectations (docs/start/sandbox.md)'),
  synchronousCommit: oneOf(
    ['on', 'off'],
    'off is faster, but loses up to a second of answered requests if Postgres crashes',
  ),
})

export const optionsSchema = z
  .strictObject({ ...fixedSettingsSchema.shape, ...liveSettingsSchema.shape })
  .refine(
    ({ host, insecureDefaults, ...credentials }) =>
      insecureDefaults ||
      isLoopbackName(host) ||
      clientsOf(credentials).every(({ secret }) => secret !== defaultSecret),
    {
      path: ['host'],
      error: ({ input }) =>
        `others can reach ${(input as { host: string }).host}, and the client secret is the public default: set SANDBOX_CLIENT_SECRET, or allow it with --insecure-defaults`,
    },
  )
  .refine(({ databaseUrl, embedded, dataDir }) => databaseUrl ?? dataDir ?? embedded, {
    path: ['databaseUrl'],
    error: 'set it, or embedded',
    when: () => true, // also if other fields are wrong
  })

export function clientsOf({ clients, clientId, clientSecret }: Credentials): readonly ClientSettings[] {
  return clients ?? [{ id: clientId, secret: clientSecret }]
}
type Credentials = Pick<z.infer<typeof fixedSettingsSchema>, 'clients' | 'clientId' | 'clientSecret'>

export type SandboxSettings = z.infer<typeof optionsSchema>

export type DatabasePlace = Pick<SandboxSettings, 'databaseUrl' | 'embedded' | 'dataDir'>

/** The embedded server wins over SANDBOX_DATABASE_URL. */
export function isEmbedded({ embedded, dataDir }: DatabasePlace): boolean {
  return embedded || dataDir !== undefined
}
