/**
 * The service's resources (docs/reference/interface.md, 1). A new resource needs a row here, and a migration that lets
 * the ledger hold its name. No other file of src names a resource. This file imports nothing.
 */
export const serviceResources = {
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
  /** A POST to this path submits a record. A GET of `path/ID` reads its status. */
  path: string
  /** The name of the POST in metrics. */
  submit: string
  /** The name of the GET in metrics. */
  ask: string
  idField: string
  /** The field of a status answer that has the result. Null if all fields without another meaning are the result. */
  resultField: string | null
  /** The word for what the id identifies. */
  noun: string
  /** The section of docs/reference/interface.md. */
  section: string
  /** The fields that a request must have. The service accepts further fields. */
  body: Readonly<Record<string, BodyRule>>
}

export type BodyRule =
  /** `lengthMax` is in characters. Null allows any. */
  | { kind: 'text'; lengthMax: number | null; values: readonly string[] | null }
  | { kind: 'uuid' }
  | { kind: 'array' }
  | { kind: 'object'; members: Readonly<Record<string, BodyRule>> }

export type Resource = keyof typeof serviceResources

/** The first resource is used if no mapping file names one. */
export const resourceNames = Object.keys(serviceResources) as [Resource, ...Resource[]]

export type ResourceEndpoint = (typeof serviceResources)[Resource]['submit' | 'ask']

/** The endpoints of the service (docs/reference/interface.md, 4), by their names in metrics. */
export type Endpoint = 'token' | ResourceEndpoint

export const endpoints: readonly Endpoint[] = ['token', ...resourceNames.flatMap(endpointsOf)]

export function makePerResource<T>(make: (resource: Resource) => T): Record<Resource, T> {
  return Object.fromEntries(resourceNames.map((resource) => [resource, make(resource)])) as Record<Resource, T>
}

export function routeOf(endpoint: ResourceEndpoint): { method: 'POST' | 'GET'; path: string } {
  return routes[endpoint]
}

const routes = Object.fromEntries(
  Object.values(serviceResources).flatMap(({ path, submit, ask }) => [
    [submit, { method: 'POST', path }],
    [ask, { method: 'GET', path }],
  ]),
) as Record<ResourceEndpoint, { method: 'POST' | 'GET'; path: string }>

function endpointsOf(resource: Resource): ResourceEndpoint[] {
  return [serviceResources[resource].submit, serviceResources[resource].ask]
}
