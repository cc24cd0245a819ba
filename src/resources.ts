/**
 * The service's resources (docs/interface.md, section 1), each once: what takes records, and what a record of it is asked by.
 *
 * To add one: a row here, and a migration that lets the ledger hold its name. Nothing else of src names a resource.
 * Imports nothing.
 */
export const resources = {
  data: {
    path: '/api/v1/data',
    submit: 'submit',
    ask: 'status',
    idField: 'transactionId',
    resultField: 'result',
    noun: 'transaction',
    section: '2.2',
    body: {
      customerId: { kind: 'text', lengthMax: 10, values: null },
      data: {
        kind: 'object',
        members: {
          field1: { kind: 'text', lengthMax: null, values: ['value1', 'value2', 'value3'] },
          field2: { kind: 'text', lengthMax: null, values: null },
        },
      },
    },
  },
  orders: {
    path: '/api/v1/orders',
    submit: 'order',
    ask: 'order_status',
    idField: 'orderId',
    resultField: null,
    noun: 'order',
    section: '2.6',
    body: { customerId: { kind: 'uuid' }, items: { kind: 'array' } },
  },
} as const satisfies Record<string, ResourceRow>

interface ResourceRow {
  /** A POST to it submits a record; a GET of `path/ID` asks what has become of it. */
  path: string
  /** The POST, by the name that the metrics use. */
  submit: string
  /** The GET, by the name that the metrics use. */
  ask: string
  /** The field of its answers that holds the id. */
  idField: string
  /** The field of its status that holds the result; null: every field that has no other meaning is part of it. */
  resultField: string | null
  /** What people call the thing that has the id. */
  noun: string
  /** Where docs/interface.md describes the request. */
  section: string
  /** What a request must hold, by name; the service takes more beside it. */
  body: Readonly<Record<string, BodyRule>>
}

/** What the service asks of a part of a request. */
export type BodyRule =
  /** `lengthMax` in characters, null for as many as you like; `values`: one of these, null for any. */
  | { kind: 'text'; lengthMax: number | null; values: readonly string[] | null }
  | { kind: 'uuid' }
  | { kind: 'array' }
  | { kind: 'object'; members: Readonly<Record<string, BodyRule>> }

/** Where a record is sent, as mapping files name it. */
export type Resource = keyof typeof resources

/** Every resource; the first is what is asked where nothing says which is used. */
export const resourceNames = Object.keys(resources) as [Resource, ...Resource[]]

/** An endpoint that takes records or is asked about them. */
export type ResourceEndpoint = (typeof resources)[Resource]['submit' | 'ask']

/** Every endpoint of the service (docs/interface.md, section 4), by the names that metrics use. */
export type Endpoint = 'token' | ResourceEndpoint

export const endpoints: readonly Endpoint[] = ['token', ...resourceNames.flatMap(endpointsOf)]

/** One value for each resource. */
export function forEachResource<T>(make: (resource: Resource) => T): Record<Resource, T> {
  return Object.fromEntries(resourceNames.map((resource) => [resource, make(resource)])) as Record<Resource, T>
}

/** How an endpoint is reached: a POST to `path`, or a GET of `path/ID`. */
export function routeOf(endpoint: ResourceEndpoint): { method: 'POST' | 'GET'; path: string } {
  return routes[endpoint]
}

const routes = Object.fromEntries(
  Object.values(resources).flatMap(({ path, submit, ask }) => [
    [submit, { method: 'POST', path }],
    [ask, { method: 'GET', path }],
  ]),
) as Record<ResourceEndpoint, { method: 'POST' | 'GET'; path: string }>

function endpointsOf(resource: Resource): ResourceEndpoint[] {
  return [resources[resource].submit, resources[resource].ask]
}
