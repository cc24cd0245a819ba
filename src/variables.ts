import { z } from 'zod'
import type { readVariables, Variable } from './readVariables.ts'
import {
  addresses,
  contract,
  file,
  headerName,
  hostNames,
  integer,
  name,
  postgresUrl,
  proxyUrl,
  seconds,
  secondsOrNever,
  serviceAuthUrl,
  serviceBaseUrl,
} from './variableSchemas.ts'

/** Set by every POST. */
const ownHeaders: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])

/** Every variable of the environment that the daemon reads. docs/reference/variables.md is generated from this table. */
export const variables = {
  DATABASE_URL: {
    instances: 'same: refused',
    schema: postgresUrl,
    secret: true,
    about: 'the database with the outbox',
  },
  STATE_DATABASE_URL: {
    instances: 'same: refused',
    schema: postgresUrl.optional(),
    shownDefault: 'DATABASE_URL',
    secret: true,
    about: 'where the schema `outboxd` (ledger, budget) and pg-boss’s schema live',
  },
  OUTBOX_TABLE: {
    instances: 'same: refused',
    schema: z
      .string()
      .regex(/^[^.]+(\.[^.]+)?$/, 'must be a table name, or schema.name')
      .default('outbox'),
    about: 'name, or schema.name',
  },
  SERVICE_BASE_URL: {
    instances: 'same: refused',
    schema: serviceBaseUrl,
    about: '{base_url} of the service; https, or http on loopback alone',
  },
  SERVICE_AUTH_URL: {
    instances: 'same: refused',
    schema: serviceAuthUrl,
    about: '{auth_url}, the token issuer; https, or http on loopback alone',
  },
  SERVICE_IS_TEST: {
    instances: 'own: no daemon reads it',
    schema: z.enum(['yes', 'no']).default('no'),
    about: 'yes: the service at SERVICE_BASE_URL is a test environment, in which `outboxd discover` may create records',
  },
  SERVICE_CLIENT_ID: {
    instances: 'same: refused',
    schema: name,
    secret: true,
    about: 'OAuth client id',
  },
  SERVICE_CLIENT_SECRET: {
    instances: 'own: while it is renewed, two are valid',
    schema: name,
    secret: true,
    about: 'OAuth client secret',
  },
  SERVICE_CA_FILE: {
    instances: 'own: a path on this host',
    schema: file.optional(),
    about:
      'PEM of the authorities that we believe of the service, instead of those that Node knows; read again while the daemon runs',
  },
  SERVICE_CERT_FILE: {
    instances: 'own: a path on this host',
    schema: file.optional(),
    about: 'client certificate with those in between, PEM; read again, with its key, while the daemon runs',
  },
  SERVICE_KEY_FILE: {
    instances: 'own: a path on this host',
    schema: file.optional(),
    about: 'key of the client certificate, PEM',
  },
  SERVICE_PROXY: {
    instances: 'own: the way out of this host’s network',
    schema: proxyUrl.optional(),
    shownDefault: 'none',
    secret: true,
    about:
      'http://host:port of a proxy through which all requests to the service and the token issuer go (CONNECT), perhaps with user:password@; HTTPS_PROXY and its like are not used',
  },
  RATE_LIMIT_REQUESTS: {
    instances: 'same: reported',
    schema: integer(1, 10_000_000).default(100),
    about: 'requests that the service allows per window, all instances together',
  },
  RATE_LIMIT_WINDOW_SECONDS: {
    instances: 'same: reported',
    schema: seconds(86_400).default(60_000),
    about: 'length of that window',
  },
  REQUEST_TIMEOUT_SECONDS: {
    instances: 'same: reported',
    schema: seconds(3_600).default(30_000),
    about: 'whole request, body included',
  },
  MAX_IN_FLIGHT: {
    instances: 'own: as much as this host can do',
    schema: integer(1, 1_000).default(8),
    about: 'requests at once, per instance; also the most that a crash can leave in doubt',
  },
  TOKEN_REFRESH_SECONDS: {
    instances: 'own: each instance has a token of its own',
    schema: seconds(86_400).default(300_000),
    about: 'a token is renewed this long before it expires; at half its lifetime where that is shorter',
  },
  TOKEN_EXPIRES_IN_UNIT: {
    instances: 'same: reported',
    schema: z.enum(['seconds', 'milliseconds', 'minutes']).default('seconds'),
    about: 'unit of expires_in, which the interface does not show',
  },
  DISCOVERED_CONTRACT: {
    instances: 'own: it decides what this instance counts, and nothing of what it sends',
    schema: contract.optional(),
    about:
      'what `outboxd discover --write` saw the service answer: `check --contract` compares with it, and the daemon counts what contradicts it',
  },
  UNAVAILABLE_PAUSE_SECONDS: {
    instances: 'same: reported',
    schema: seconds(86_400).default(300_000),
    about: 'pause after E003',
  },
  UNAUTHORIZED_PAUSE_SECONDS: {
    instances: 'same: reported',
    schema: seconds(86_400).default(60_000),
    about: 'pause after a second 401',
  },
  STUCK_AFTER_SECONDS: {
    instances: 'same: reported',
    schema: secondsOrNever(366 * 86_400).default(86_400_000),
    about:
      'after so long a record that the service accepted and has not ended, or does not say that it has, is a problem for a person; 0: never',
  },
  RETENTION_DAYS: {
    instances: 'same: reported',
    schema: integer(0, 36_500).default(90),
    about:
      'completed and discarded records are deleted from the ledger so many days after their end, and their ids stay known; what waits for a person stays; 0 keeps all',
  },
  RETENTION_PAYLOAD_DAYS: {
    instances: 'same: reported',
    schema: integer(0, 36_500).default(30),
    about:
      'their payloads, bodies and results, which may hold personal data, are emptied so many days after their end; 0: with the record',
  },
  IDEMPOTENCY_HEADER: {
    instances: 'same: reported',
    schema: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the name of a header')
      .refine((name) => !ownHeaders.has(name.toLowerCase()), 'must be no header that a request has already')
      .default('Idempotency-Key'),
    about: 'header in which each POST carries its idempotency key',
  },
  IDEMPOTENCY_KEY_FORM: {
    instances: 'same: reported',
    schema: z.enum(['quoted', 'bare']).default('quoted'),
    about: 'how that key, a UUID, is written: quoted ("8e03…", the draft standard) or bare (8e03…)',
  },
  UNCERTAIN_POLICY: {
    instances: 'same: reported',
    schema: z.enum(['hold', 'resend', 'probe']).default('hold'),
    about: 'what to do when nobody can know whether a request arrived: hold, resend, probe',
  },
  LEDGER_STANDBY: {
    instances: 'same: reported',
    schema: z.enum(['none', 'synchronous']).default('none'),
    about:
      'what is promoted when the ledger’s database fails over: with synchronous, only ever a standby that COMMITs wait for, and sending goes on by itself; with none, after outboxd recover',
  },
  KEY_ON_FAILURE: {
    instances: 'same: reported',
    schema: z.enum(['continue', 'block']).default('continue'),
    about: 'whether a rejected or failed record holds back its successors of the same key: continue, block',
  },
  CAPTURE_WINDOW: {
    instances: 'same: reported',
    schema: integer(1, 1_000_000).default(1000),
    about:
      'the most submissions that are queued at once, without those held behind one that waits for a person; the rest of a backlog stays in the outbox, and so do records of one key beyond a 40th of this',
  },
  PAYLOAD_MAX_BYTES: {
    instances: 'same: reported',
    schema: integer(1, 100_000_000).default(1_000_000),
    about: 'a larger payload is rejected unread',
  },
  MAPPINGS_DIR: {
    instances: 'own: a path on this host; what its files mean is compared',
    schema: name.default('mappings'),
    about:
      'folder of the mapping files; against a service on loopback the examples of the package, where there is no such folder',
  },
  HTTP_HOST: {
    instances: 'own: an address of this host',
    schema: name.default('127.0.0.1'),
    about: 'address of /metrics, /livez, /readyz',
  },
  HTTP_PORT: {
    instances: 'own: a port of this host',
    schema: integer(0, 65_535).default(9464),
    about: 'its port; 0 takes any free one',
  },
  LOG_LEVEL: {
    instances: 'own: for a look at one instance',
    schema: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
    about: 'JSON lines on stdout',
  },
  LOG_FORMAT: {
    instances: 'own: as this host collects logs',
    schema: z.enum(['auto', 'json', 'journald']).default('auto'),
    about:
      'auto: JSON lines, each after its priority such as `<4>` where stdout is systemd’s journal, which takes that off again; json: never; journald: always',
  },
  CONSOLE_NAME: {
    instances: 'own: no daemon reads it',
    schema: hostNames.optional(),
    about:
      'names under which browsers ask for the console beyond that of --host and this machine’s, such as console.example, with commas',
  },
  CONSOLE_PASSWORD_FILE: {
    instances: 'own: no daemon reads it',
    schema: file.optional(),
    about: 'file with the line that `outboxd console --hash-password` prints: the console asks for that password',
  },
  CONSOLE_TRUST_HEADER: {
    instances: 'own: no daemon reads it',
    schema: headerName.optional(),
    about: 'header in which an authenticating proxy tells the console who has signed in, such as X-Forwarded-User',
  },
  CONSOLE_TRUST_PROXY: {
    instances: 'own: no daemon reads it',
    schema: addresses.optional(),
    about:
      'addresses of the console’s proxy, such as 10.0.0.7 or 10.0.0.0/28, with commas: whose CONSOLE_TRUST_HEADER and X-Forwarded headers are believed',
  },
} as const satisfies Record<string, Variable>

export type Reader = ReturnType<typeof readVariables<typeof variables>>
