/**
 * Where our sessions on the ledger look names up: in the catalog alone. All of ours are written with their schema, and what
 * somebody puts into a schema of the role's or the database's search path can stand in for none of the server's functions. The
 * client's tables are another matter: their types and operators are found as the client has set it.
 */
export const ownNames = { search_path: 'pg_catalog' } as const
