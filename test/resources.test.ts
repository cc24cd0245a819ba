import { expect, test } from 'vitest'
import { endpoints, makePerResource, resourceNames, routeOf, serviceResources } from '../src/resources.ts'

test('each endpoint is one resource’s alone, and takes its requests to its path', () => {
  expect(endpoints).toEqual(['token', 'submit', 'status', 'order', 'order_status'])
  for (const resource of resourceNames) {
    const { path, submit, ask } = serviceResources[resource]
    expect(routeOf(submit)).toEqual({ method: 'POST', path })
    expect(routeOf(ask)).toEqual({ method: 'GET', path })
  }
})

test('there is a value for each resource', () => {
  expect(makePerResource((resource) => serviceResources[resource].noun)).toEqual({
    data: 'transaction',
    orders: 'order',
  })
})
