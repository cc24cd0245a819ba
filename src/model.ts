/** The nouns that more than one part of the project speaks of (docs/architecture.md, "Words"). Whoever uses one imports it from here. */

export type * from './model/submission.ts'
export * from './model/submission.ts'
export type * from './model/dispatch.ts'
export type * from './model/outbox.ts'
export * from './model/problem.ts'
export * from './model/service.ts'
export * from './model/statuses.ts'
export type * from './model/submission.ts'

export const states = [
  'queued',
  'sending',
  'accepted',
  'completed',
  'failed',
  'rejected',
  'uncertain',
  'discarded',
] as const
/** Where a submission is on its way (docs/guarantee.md, "The state machine"). */
export type State = (typeof states)[number]

/** The states that wait for a person. */
export const waitingForPerson = ['failed', 'rejected', 'uncertain'] as const satisfies readonly State[]

/** The states in which a submission has come to its end, until an operator says otherwise. */
export const ended = ['completed', 'failed', 'rejected', 'uncertain', 'discarded'] as const satisfies readonly State[]

export const pauseReasons = ['throttled', 'unavailable', 'unauthorized', 'unreachable', 'operator', 'history'] as const
/** Why nobody sends for a while. */
export type PauseReason = (typeof pauseReasons)[number]

export type UncertainPolicy = 'hold' | 'resend' | 'probe'
