import type { Actor } from '../../src/ledger/operator/operator.ts'

/** An operator who changes something in a test. */
export const testActor: Actor = { who: 'operator test', reason: 'a test', account: 'test@host' }
