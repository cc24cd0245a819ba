import { expect, test } from 'vitest'
import { createLoginAttemptLimit } from '../../../src/console/guard/attempts.ts'

function setup() {
  let nowMs = 0
  const attempts = createLoginAttemptLimit({ stopwatch: () => () => nowMs })
  const tries = (n: number, address: (i: number) => string) =>
    Array.from({ length: n }, (_, i) => attempts.takeOrWaitMs(address(i))).filter((waitMs) => waitMs === 0).length
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { attempts, tries, pass }
}

test('an address has five tries, and then one a minute', () => {
  const { attempts, tries, pass } = setup()
  expect(tries(10_000, () => '10.0.0.1')).toBe(5)
  expect(attempts.takeOrWaitMs('10.0.0.1')).toBe(60_000)
  pass(59_999)
  expect(attempts.takeOrWaitMs('10.0.0.1')).toBe(1)
  pass(1)
  expect(tries(2, () => '10.0.0.1')).toBe(1)
})

test('10,000 addresses share 30 tries, and then one every two seconds', () => {
  const { tries, pass } = setup()
  const address = (i: number) => `10.${i >> 8}.${i & 255}.1`
  expect(tries(10_000, address)).toBe(30)
  pass(10_000)
  expect(tries(10_000, (i) => `11${address(i).slice(2)}`)).toBe(5)
})

test('an IPv6 network counts as one address', () => {
  const { tries } = setup()
  expect(tries(100, (i) => `2001:db8::${i.toString(16)}`)).toBe(5)
  expect(tries(100, (i) => `2001:db8:0:1:${i.toString(16)}::1`)).toBe(5)
})

test('a browser that has signed in before has five tries of its own, even if all other tries are used up', () => {
  const { attempts, tries, pass } = setup()
  tries(10_000, () => '127.0.0.1')
  tries(10_000, (i) => `10.1.${i >> 8}.${i & 255}`)
  const own = () =>
    Array.from({ length: 10 }, () => attempts.takeOrWaitMs('127.0.0.1', 'device')).filter((ms) => ms === 0).length
  expect(attempts.takeOrWaitMs('127.0.0.1')).toBeGreaterThan(0)
  expect(own()).toBe(5)
  expect(attempts.takeOrWaitMs('127.0.0.1', 'other device')).toBe(0)
  pass(60_000)
  expect(own()).toBe(1)
})

test('successful sign-ins use up no tries', () => {
  const { attempts } = setup()
  for (let i = 0; i < 1_000; i++) {
    expect(attempts.takeOrWaitMs('10.0.0.1')).toBe(0)
    attempts.giveBack('10.0.0.1')
  }
})
