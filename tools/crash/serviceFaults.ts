import type { SeededRandom } from './seededRandom.ts'

type Spec = Record<string, unknown> & { kind: string }

const posts = ['submit', 'order']
const polls = ['status', 'order_status']

/** Keeps requests on the wire for a while, so that kills find them there. */
const slow: Spec[] = [
  { kind: 'delay', endpoint: posts, when: 'after', delayMs: 1_200, share: 0.6 },
  { kind: 'delay', endpoint: posts, when: 'before', delayMs: 500, share: 0.6 },
  { kind: 'delay', endpoint: polls, when: 'after', delayMs: 200, share: 0.3 },
]

/** A service must not answer 429, 401 or E003 to what it has stored, so these are missing (docs/why/guarantee.md). */
const bad: Spec[] = [
  { kind: 'delay', endpoint: posts, when: 'after', delayMs: 2_600 },
  { kind: 'delay', endpoint: posts, when: 'before', delayMs: 2_600 },
  { kind: 'drop', endpoint: posts, when: 'before' },
  { kind: 'drop', endpoint: posts, when: 'after' },
  { kind: 'answer', endpoint: posts, status: 500 },
  { kind: 'answer', endpoint: posts, status: 502 },
  { kind: 'answer', endpoint: posts, status: 502, when: 'after' },
  { kind: 'garbage', endpoint: posts },
  { kind: 'missing_id', endpoint: posts },
  { kind: 'oversized', endpoint: posts },
  { kind: 'gzip', endpoint: posts },
  { kind: 'drip', endpoint: posts, intervalMs: 100 },
  { kind: 'answer', endpoint: polls, status: 500 },
  { kind: 'answer', endpoint: polls, status: 404 },
  { kind: 'drop', endpoint: polls },
  { kind: 'garbage', endpoint: polls },
  { kind: 'unknown_status', endpoint: polls },
  { kind: 'wrong_id', endpoint: polls },
  { kind: 'delay', endpoint: polls, delayMs: 2_600 },
  // The service performs the request and redirects.
  { kind: 'redirect', endpoint: posts, status: 303, when: 'after' },
  { kind: 'redirect', endpoint: posts, status: 303, when: 'after', location: '/status/{id}' },
  { kind: 'answer', endpoint: posts, status: 300, when: 'after' },
  { kind: 'answer', endpoint: posts, status: 304, body: '' },
  { kind: 'answer', endpoint: posts, status: 304, when: 'after', body: '' },
]

/** Each of these faults pauses sending for a second or more. */
const pausing: Spec[] = [
  { kind: 'answer', endpoint: posts, status: 503, code: 'E003' },
  { kind: 'answer', status: 429, headers: { 'retry-after': '1' } },
  { kind: 'answer', status: 429 },
  { kind: 'answer', status: 401 },
  { kind: 'answer', status: 403 },
  { kind: 'redirect', endpoint: posts },
  { kind: 'answer', endpoint: polls, status: 503, code: 'E003' },
  { kind: 'answer', endpoint: 'token', status: 500 },
  { kind: 'answer', endpoint: 'token', status: 401 },
  { kind: 'drop', endpoint: 'token' },
  { kind: 'garbage', endpoint: 'token' },
]

/** Share of pausing faults. With more of them, kills would find few requests. */
const pausingShare = 0.08

/** Number of rounds in ten with a service that is only slow, so that kills meet records on their way. */
const calmRounds = 7

/** A service that stores a record and then answers 500. If it recognises keys, it answers the repeat with E002. */
const storedAnd500: Spec = { kind: 'answer', endpoint: posts, status: 500, when: 'after' }

export interface ServiceFaults {
  /** Replaces all faults: makes requests slow, and sometimes adds a few faults. @returns how many */
  stir(): Promise<number>
  clear(): Promise<void>
}

export function createServiceFaults(
  sandboxUrl: string,
  random: SeededRandom,
  idempotency: 'ignore' | 'e002',
): ServiceFaults {
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${sandboxUrl}/_sandbox/${path}`, {
      method,
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    })
    if (!response.ok) throw new Error(`the sandbox refuses ${method} ${path}: ${await response.text()}`)
  }
  const choice = idempotency === 'e002' ? [...bad, storedAnd500, storedAnd500, storedAnd500] : bad
  let round = 0
  return {
    async stir() {
      await call('DELETE', 'faults')
      const isCalm = round++ % 10 >= 10 - calmRounds
      const storm = [1, 2, 3].map(() => random.pick(random.chance(pausingShare) ? pausing : choice))
      // Does not pause sending, so it may also happen in a calm.
      const calm = idempotency === 'e002' ? [storedAnd500] : []
      const faults = (isCalm ? calm : storm).map((fault) => ({ ...fault, times: random.whole(1, 3) }))
      // The first matching fault is applied, so the rare ones come first.
      for (const fault of [...faults, random.pick(slow)]) await call('POST', 'faults', fault)
      if (random.chance(0.1)) await call('POST', 'tokens/revoke')
      return faults.length
    },
    clear: () => call('DELETE', 'faults'),
  }
}
