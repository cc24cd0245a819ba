import { join } from 'node:path'

/** Environment for our programs as processes: each start would otherwise strip the types of some 200 files anew. */
export const compileCache = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'outboxd-tests'),
}
