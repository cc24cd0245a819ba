/** The nouns that several parts of the project speak of (docs/reference/glossary.md), to be imported from here. */

export type * from './model/dispatch.ts'
export type * from './model/outbox.ts'
export * from './model/problem.ts'
export * from './model/service.ts'
export * from './model/statuses.ts'
export * from './model/submission.ts'
