/** The shared types (docs/reference/glossary.md). Import them from here. */

export type * from './model/dispatch.ts'
export * from './model/eventCauses.ts'
export type * from './model/outbox.ts'
export * from './model/problem.ts'
export * from './model/service.ts'
export * from './model/statuses.ts'
export * from './model/submission.ts'
