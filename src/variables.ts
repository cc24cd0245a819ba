import { z } from 'zod'
import type { createVariableReader, Variable } from './createVariableReader.ts'
import { defaultLedgerSchema, ledgerSchemaPattern } from './postgres/ledgerSchema.ts'
import {
  addressesAndNetworksSchema,
  collectorUrlSchema,
  discoveredContractSchema,
  filePathSchema,
  hostNamesSchema,
  integerSchema,
  nameSchema,
  nonEmptyTextSchema,
  otlpHeadersSchema,
  postgresUrlSchema,
  proxyHeaderNameSchema,
  proxyUrlSchema,
  secondsAsMsSchema,
  secondsOrNeverAsMsSchema,
  serviceAuthUrlSchema,
  serviceBaseUrlSchema,
} from './variableSchemas.ts'

/** Headers that every POST already has. */
const ownHeaders: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'traceparent',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])

/** docs/reference/variables.md is generated from this table. */
export const variables = {
  DATABASE_URL: {
    instances: 'same: refused',
    schema: postgresUrlSchema,
    secret: true,
    about: 'the database with the outbox and the ledger',
  },
  LEDGER_SCHEMA: {
    instances: 'same: refused',
    schema: z
      .string()
      .regex(
        ledgerSchemaPattern,
        'must be 1 to 41 lower-case letters, digits and _, beginning with a letter and not ending in _jobs',
      )
      .default(defaultLedgerSchema),
    about: 'the schema of the ledger, and with `_jobs` at its end that of pg-boss. One per service beside an ERP',
  },
  OUTBOX_TABLE: {
    instances: 'same: refused',
    schema: z
      .string()
      .regex(/^[^.]+(\.[^.]+)?$/, 'must be a table name, or schema.name')
      .default('outbox'),
    about: 'the outbox table: name, or schema.name',
  },
  SERVICE_BASE_URL: {
    instances: 'same: refused',
    schema: serviceBaseUrlSchema,
    about: '{base_url} of the service: https, or http on loopback only',
  },
  SERVICE_AUTH_URL: {
    instances: 'same: refused',
    schema: serviceAuthUrlSchema,
    about: '{auth_url} of the token issuer: https, or http on loopback only',
  },
  SERVICE_IS_TEST: {
    instances: 'own: no daemon reads it',
    schema: z.enum(['yes', 'no']).default('no'),
    about: 'yes: a test environment, in which `outboxd discover` may create records',
  },
  SERVICE_CLIENT_ID: {
    instances: 'same: refused',
    schema: nonEmptyTextSchema,
    secret: true,
    about: 'OAuth client id',
  },
  SERVICE_CLIENT_SECRET: {
    instances: 'own: during a renewal two secrets are valid',
    schema: nonEmptyTextSchema,
    secret: true,
    about: 'OAuth client secret',
  },
  SERVICE_CA_FILE: {
    instances: 'own: a path on this host',
    schema: filePathSchema.optional(),
    about: 'PEM file of the authorities to trust for the service, instead of Node’s; read again at run time',
  },
  SERVICE_CERT_FILE: {
    instances: 'own: a path on this host',
    schema: filePathSchema.optional(),
    about: 'PEM file of the client certificate and its intermediate ones; read again at run time, as is its key',
  },
  SERVICE_KEY_FILE: {
    instances: 'own: a path on this host',
    schema: filePathSchema.optional(),
    about: 'PEM file of the client certificate’s key',
  },
  SERVICE_PROXY: {
    instances: 'own: the way out of this host’s network',
    schema: proxyUrlSchema.optional(),
    shownDefault: 'none',
    secret: true,
    about:
      'proxy for all requests to the service and the token issuer (CONNECT): http://host:port or http://user:password@host:port. HTTPS_PROXY is not used',
  },
  RATE_LIMIT_REQUESTS: {
    instances: 'same: reported',
    schema: integerSchema(1, 10_000_000).default(100),
    about: 'requests per window, for all instances together',
  },
  RATE_LIMIT_WINDOW_SECONDS: {
    instances: 'same: reported',
    schema: secondsAsMsSchema(86_400).default(60_000),
    about: 'length of the rate limit’s window',
  },
  REQUEST_TIMEOUT_SECONDS: {
    instances: 'same: reported',
    schema: secondsAsMsSchema(3_600).default(30_000),
    about: 'time for a whole request, its answer included',
  },
  MAX_IN_FLIGHT: {
    instances: 'own: as much as this host can do',
    schema: integerSchema(1, 1_000).default(8),
    about: 'requests at once, per instance. A crash leaves at most this many records in doubt',
  },
  TOKEN_REFRESH_SECONDS: {
    instances: 'own: each instance has a token of its own',
    schema: secondsAsMsSchema(86_400).default(300_000),
    about: 'how long before its end a token is renewed, but never before half its lifetime',
  },
  TOKEN_EXPIRES_IN_UNIT: {
    instances: 'same: reported',
    schema: z.enum(['seconds', 'milliseconds', 'minutes']).default('seconds'),
    about: 'unit of `expires_in` in the answer with a token',
  },
  DISCOVERED_CONTRACT: {
    instances: 'own: it changes only the metrics of this instance, not what it sends',
    schema: discoveredContractSchema.optional(),
    about:
      'the service’s answers as `outboxd discover --write FILE` noted them; `outboxd check --contract` reports, and the daemon counts, answers that differ',
  },
  UNAVAILABLE_PAUSE_SECONDS: {
    instances: 'same: reported',
    schema: secondsAsMsSchema(86_400).default(300_000),
    about: 'pause after E003, or a 503 without Retry-After: the service or the token issuer is unavailable',
  },
  UNAUTHORIZED_PAUSE_SECONDS: {
    instances: 'same: reported',
    schema: secondsAsMsSchema(86_400).default(60_000),
    about: 'pause after a refused sign-in, a 401 for a new token, a 403, 407 or redirect',
  },
  STUCK_AFTER_SECONDS: {
    instances: 'same: reported',
    schema: secondsOrNeverAsMsSchema(366 * 86_400).default(86_400_000),
    about: 'age at which a sent record without an outcome becomes a problem; 0: never',
  },
  RETENTION_DAYS: {
    instances: 'same: reported',
    schema: integerSchema(0, 36_500).default(90),
    about:
      'days after which completed and discarded records are deleted, unless their rows wait or are under way; 0: never',
  },
  RETENTION_PAYLOAD_DAYS: {
    instances: 'same: reported',
    schema: integerSchema(0, 36_500).default(30),
    about:
      'days after which payloads, bodies and results of completed and discarded records are emptied. 0: when the record is deleted',
  },
  IDEMPOTENCY_HEADER: {
    instances: 'same: reported',
    schema: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the name of a header')
      .refine((name) => !ownHeaders.has(name.toLowerCase()), 'must not be a header that each request already has')
      .default('Idempotency-Key'),
    about: 'header that carries the idempotency key of each POST',
  },
  IDEMPOTENCY_KEY_FORM: {
    instances: 'same: reported',
    schema: z.enum(['quoted', 'bare']).default('quoted'),
    about: 'form of the idempotency key, a UUID: quoted ("8e03…", the draft standard) or bare (8e03…)',
  },
  UNCERTAIN_POLICY: {
    instances: 'same: reported',
    schema: z.enum(['hold', 'resend', 'probe']).default('hold'),
    about:
      'what to do if a request may have arrived. hold: you decide; resend: send it again; probe: ask the service for the record’s id',
  },
  SERVER_ERRORS: {
    instances: 'same: reported',
    schema: z.enum(['retry', 'hold']).default('retry'),
    about:
      'what to do if the service answers a POST with 500. retry: send it again, at most three times; hold: it may have arrived, and you decide',
  },
  LEDGER_STANDBY: {
    instances: 'same: reported',
    schema: z.enum(['none', 'synchronous']).default('none'),
    about:
      'which standby a failover of the database promotes. synchronous: one that has every commit, so sending continues; none: possibly another, so sending stops until `outboxd recover`',
  },
  KEY_ON_FAILURE: {
    instances: 'same: reported',
    schema: z.enum(['continue', 'block']).default('continue'),
    about: 'whether later records of a key wait behind a rejected or failed one: continue (no), block (yes)',
  },
  INSTALLATION_NAME: {
    instances: 'same: reported',
    schema: nameSchema.default(''),
    shownDefault: 'none',
    about: 'name of this installation, such as TEST, for the console, `status` and alerts (a label of all metrics)',
  },
  CAPTURE_WINDOW: {
    instances: 'same: reported',
    schema: integerSchema(1, 1_000_000).default(1000),
    about:
      'most records queued at once; new rows wait until a quarter of it is free. Of one key at most a 40th. Records that wait behind one that needs attention do not count',
  },
  PAYLOAD_MAX_BYTES: {
    instances: 'same: reported',
    schema: integerSchema(1, 100_000_000).default(1_000_000),
    about: 'largest payload. A record with a larger one, or with over 10,000,000 characters, is rejected',
  },
  MAPPINGS_DIR: {
    instances: 'own: a path on this host; what its files mean is compared',
    schema: nonEmptyTextSchema.default('mappings'),
    about:
      'folder of the mapping files. If it is missing and the service is on loopback, the package’s examples are used',
  },
  HTTP_HOST: {
    instances: 'own: an address of this host',
    schema: nonEmptyTextSchema.default('127.0.0.1'),
    about: 'address of /metrics, /livez, /readyz',
  },
  HTTP_PORT: {
    instances: 'own: a port of this host',
    schema: integerSchema(0, 65_535).default(9464),
    about: 'port of /metrics, /livez, /readyz; 0: any free one',
  },
  LOG_LEVEL: {
    instances: 'own: for a look at one instance',
    schema: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
    about: 'lowest level that is logged, as JSON lines on stdout',
  },
  LOG_FORMAT: {
    instances: 'own: as this host collects logs',
    schema: z.enum(['auto', 'json', 'journald']).default('auto'),
    about:
      'auto: JSON lines, after a priority such as `<4>` if stdout is systemd’s journal; json: never with a priority; journald: always',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    instances: 'own: the collector of this host',
    schema: collectorUrlSchema.optional(),
    about:
      'OpenTelemetry collector that gets a trace of each record (OTLP over HTTP with JSON), such as http://localhost:4318',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    instances: 'own: the collector of this host',
    schema: otlpHeadersSchema.optional(),
    secret: true,
    about: 'headers for that collector: name=value, separated by commas',
  },
  OTEL_SERVICE_NAME: {
    instances: 'own: how this host is named in traces',
    schema: nonEmptyTextSchema.default('outboxd'),
    about: 'service.name of the traces',
  },
  CONSOLE_COLOUR: {
    instances: 'own: no daemon reads it',
    schema: z.enum(['red', 'orange', 'green', 'blue', 'violet']).optional(),
    shownDefault: 'none',
    about: 'colour of a bar above each page of the console, to tell installations apart',
  },
  CONSOLE_NAME: {
    instances: 'own: no daemon reads it',
    schema: hostNamesSchema.optional(),
    about: 'further host names of the console, such as console.example, separated by commas',
  },
  CONSOLE_PASSWORD_FILE: {
    instances: 'own: no daemon reads it',
    schema: filePathSchema.optional(),
    about: 'file with the line that `outboxd console --hash-password` prints: the console then asks for that password',
  },
  CONSOLE_TRUST_HEADER: {
    instances: 'own: no daemon reads it',
    schema: proxyHeaderNameSchema.optional(),
    about: 'header in which an authenticating proxy names the user who signed in, such as X-Forwarded-User',
  },
  CONSOLE_TRUST_PROXY: {
    instances: 'own: no daemon reads it',
    schema: addressesAndNetworksSchema.optional(),
    about:
      'addresses of the authenticating proxy, such as 10.0.0.7 or 10.0.0.0/28, separated by commas; its header from other addresses is ignored',
  },
} as const satisfies Record<string, Variable>

export type VariableReader = ReturnType<typeof createVariableReader<typeof variables>>
