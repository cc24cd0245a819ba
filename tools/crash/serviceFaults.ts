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

/** What a service must not do is not here: answering 429, 401 or E003 to what it has stored (docs/why/guarantee.md). */
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
]

/** The request was performed, and the answer is elsewhere. Version 0.1.0 sends such a record again. */
const performed: Spec[] = [
  { kind: 'redirect', endpoint: posts, status: 303, when: 'after' },
  { kind: 'redirect', endpoint: posts, status: 303, when: 'after', location: '/status/{id}' },
  { kind: 'answer', endpoint: posts, status: 300, when: 'after' },
  { kind: 'answer', endpoint: posts, status: 304, body: '' },
  { kind: 'answer', endpoint: posts, status: 304, when: 'after', body: '' },
]

/** After each of these nobody sends for a second or more. */
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

/** How many of the faults are such: with more of them there would be little to kill. */
const pausingShare = 0.08

/** In so many of ten rounds the service is only slow: records that flow are what kills are to meet. */
const calmRounds = 7

/** A service that stores a record and then says 500: with keys that it recognises, the repeat is answered E002. */
const storedAnd500: Spec = { kind: 'answer', endpoint: posts, status: 500, when: 'after' }

export interface ServiceFaults {
  /** Clears what is on, makes requests slow, and at times switches on a few things that go wrong. @returns how many */
  stir(): Promise<number>
  /** Makes requests slow, and nothing else. */
  slow(): Promise<void>
  clear(): Promise<void>
}

export function serviceFaults(
  sandboxUrl: string,
  random: SeededRandom,
  { idempotency, upgrade }: { idempotency: 'ignore' | 'e002'; upgrade: boolean },
): ServiceFaults {
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${sandboxUrl}/_sandbox/${path}`, {
      method,
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    })
    if (!response.ok) throw new Error(`the sandbox refuses ${method} ${path}: ${await response.text()}`)
  }
  const known = upgrade ? bad : [...bad, ...performed]
  const choice = idempotency === 'e002' ? [...known, storedAnd500, storedAnd500, storedAnd500] : known
  let round = 0
  return {
    async stir() {
      await call('DELETE', 'faults')
      const isCalm = round++ % 10 >= 10 - calmRounds
      const storm = [1, 2, 3].map(() => random.pick(random.chance(pausingShare) ? pausing : choice))
      // It pauses nobody, so that it may happen in a calm, too.
      const calm = idempotency === 'e002' ? [storedAnd500] : []
      const faults = (isCalm ? calm : storm).map((fault) => ({ ...fault, times: random.whole(1, 3) }))
      // The first fault that concerns a request takes it: the rare ones come first.
      for (const fault of [...faults, random.pick(slow)]) await call('POST', 'faults', fault)
      if (random.chance(0.1)) await call('POST', 'tokens/revoke')
      return faults.length
    },
    slow: () => call('POST', 'faults', random.pick(slow)),
    clear: () => call('DELETE', 'faults'),
  }
}
