import { systemClock } from '../../../src/clock.ts'
import { readDatabaseConfig } from '../../../src/config.ts'
import { createConcurrencyLimit } from '../../../src/console/bounds.ts'
import { createConsole } from '../../../src/console/createConsole.ts'
import { readConsoleAccess } from '../../../src/console/guard/access.ts'
import { formHtml } from '../../../src/console/html/form.ts'
import { sendPage } from '../../../src/console/html/layout.ts'
import type { ConsoleParts } from '../../../src/console/parts.ts'
import { type Visitor, visit } from '../openConsole.ts'

export interface Guarded extends Visitor, AsyncDisposable {
  /** The operator of each change, in order. */
  readonly changes: string[]
  /** Lines that the console logged. */
  readonly said: string[]
}

export interface GuardedOptions {
  password?: string
  trustHeader?: string
  trustProxy?: string[]
  isReadOnly?: boolean
  names?: string[]
}

/** Opens a console on loopback without a database, with test pages: `/change` has a form that posts to itself. */
export async function openGuarded(options: GuardedOptions = {}): Promise<Guarded> {
  const { password = null, trustHeader = null, trustProxy = [], isReadOnly = false, names = [] } = options
  const host = '127.0.0.1'
  const access = readConsoleAccess(host, { password, trustHeader, trustProxy, names })
  if ('problems' in access) throw new Error(access.problems.join('\n'))
  const said: string[] = []
  const changes: string[] = []
  const parts: ConsoleParts = {
    databases: () => Promise.reject(new Error('this console has no database')),
    config: readDatabaseConfig({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }),
    installation: { name: '', colour: null, counts: null },
    clock: systemClock,
    searches: createConcurrencyLimit(2),
    askService: () => Promise.reject(new Error('this console asks nobody')),
    say: (line) => said.push(line),
  }
  const app = await createConsole(parts, { ...access, host, whoWithoutSignIn: 'operator test', isReadOnly })
  app.get('/change', ({ viewer }, reply) =>
    sendPage(reply, { title: 'Change' }, formHtml({ action: '/change', viewer, changes: false }, '')),
  )
  app.post('/change', ({ viewer }, reply) => {
    changes.push(viewer.who)
    return reply.redirect('/change', 303)
  })
  const url = await app.listen({ host, port: 0 })
  return {
    ...visit(url),
    changes,
    said,
    async [Symbol.asyncDispose]() {
      await app.close()
    },
  }
}
