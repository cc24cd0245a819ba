import type { Actor } from '../../src/ledger/operator/operator.ts'

/** A person who changes something in a test. */
export const testActor: Actor = { who: 'operator test', reason: 'a test', account: 'test@host' }
