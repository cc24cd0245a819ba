import type { KeyOnFailure } from './keyOrder.ts'

/** The settings that all instances on one ledger should share. */
export interface SharedSettings {
  requests: number
  windowMs: number
  requestTimeoutMs: number
  keyOnFailure: KeyOnFailure
  /** Further settings, by the names of variables and files; none of an instance of 0.2.0. */
  given: Readonly<Record<string, string>>
}

/** What an instance was given. */
export interface InstanceSettings extends SharedSettings {
  instanceId: string
  host: string
}

/** What holds while instances differ, and who does. */
export interface Agreement {
  requests: number
  windowMs: number
  differences: { subject: string; detail: string }[]
}

/** How the daemons read and write the outbox, by a digest of outbox.yaml. */
export interface FileInForce {
  digest: string
  sinceMs: number
  /** The daemon that took it into force. */
  by: string
}

/** The name under which the settings keep the digest of how the outbox is read. */
export const outboxFile = 'outbox.yaml'

/**
 * The safest combination of what live instances were given: the smallest limit, the longest window. Every other setting each
 * instance keeps for itself; of files that say how to read the outbox, one holds. Pure.
 */
export function agree(instances: readonly InstanceSettings[], file: FileInForce | null): Agreement {
  const requests = Math.min(...instances.map((each) => each.requests))
  const windowMs = Math.max(...instances.map((each) => each.windowMs))
  const all = instances.map((each) => ({ ...each, settings: settingsOf(each) }))
  const names = new Set(all.flatMap(({ settings }) => Object.keys(settings)))
  const differences = [...names].flatMap((name) => {
    const holds = holding({ requests, windowMs })[name] ?? 'each keeps its own'
    return differing(name, all, (value, values) =>
      name === outboxFile && file !== null
        ? fileDetail(value, file)
        : `${name} is ${value} here; the instances have ${values.join(' and ')}, and ${holds} until they are the same`,
    )
  })
  return { requests, windowMs, differences }
}

const holding = ({ requests, windowMs }: Pick<Agreement, 'requests' | 'windowMs'>): Record<string, string> => ({
  RATE_LIMIT_REQUESTS: `${requests} holds`,
  RATE_LIMIT_WINDOW_SECONDS: `${windowMs / 1000} holds`,
})

/** What an instance has said; an instance of 0.2.0 says the first four only. */
const settingsOf = ({ requests, windowMs, requestTimeoutMs, keyOnFailure, given }: InstanceSettings) => ({
  RATE_LIMIT_REQUESTS: String(requests),
  RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
  REQUEST_TIMEOUT_SECONDS: String(requestTimeoutMs / 1000),
  KEY_ON_FAILURE: keyOnFailure,
  ...given,
})

/** One line for each instance that has said it, if they are not all the same. */
function differing(
  name: string,
  instances: readonly (InstanceSettings & { settings: Record<string, string> })[],
  detailOf: (value: string, values: readonly string[]) => string,
): Agreement['differences'] {
  const said = instances.flatMap((each) => {
    const value = each.settings[name]
    return value === undefined ? [] : [{ ...each, value }]
  })
  const values = [...new Set(said.map(({ value }) => value))]
  if (values.length < 2) return []
  return said.map(({ instanceId, host, value }) => ({
    subject: `${instanceId.slice(0, 8)} on ${host}: ${name}`,
    detail: detailOf(value, values.toSorted()),
  }))
}

function fileDetail(digest: string, file: FileInForce): string {
  const since = new Date(file.sinceMs).toISOString()
  if (digest === file.digest) return `${outboxFile} is ${digest} here, which has been in force since ${since}`
  return `${outboxFile} is ${digest} here, and ${file.digest} has been in force since ${since} (daemon ${file.by}): this daemon captures nothing and writes nothing back. That ends when all daemons have its file (\`outboxd reload\`), or when those with the other one have left`
}
