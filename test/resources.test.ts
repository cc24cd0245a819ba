import { expect, test } from 'vitest'
import { endpoints, makePerResource, resourceNames, routeOf, serviceResources } from '../src/resources.ts'

test('each endpoint belongs to one resource and has its path', () => {
  expect(endpoints).toEqual(['token', 'submit', 'status', 'order', 'order_status'])
  for (const resource of resourceNames) {
    const { path, submit, ask } = serviceResources[resource]
    expect(routeOf(submit)).toEqual({ method: 'POST', path })
    expect(routeOf(ask)).toEqual({ method: 'GET', path })
  }
})

test('makePerResource has a value for each resource', () => {
  expect(makePerResource((resource) => serviceResources[resource].noun)).toEqual({
    data: 'transaction',
    orders: 'order',
  })
})
