/** The SQLSTATE of what Postgres refused, or the code of a connection that broke; undefined where an error has neither. */
export const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null | undefined)?.code

/** A lock was not to be had within lock_timeout. */
export const waitedForLock = (error: unknown): boolean => codeOf(error) === '55P03'

/** A statement took longer than statement_timeout, or somebody cancelled it. */
export const wasCanceled = (error: unknown): boolean => codeOf(error) === '57014'

/** The server takes no writes: a standby, or a primary that was one or was set so. */
export const wasReadOnly = (error: unknown): boolean => codeOf(error) === '25006'
