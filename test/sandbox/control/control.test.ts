import { expect, test, vi } from 'vitest'
import { startSandbox } from '../../../src/sandbox/startSandbox.ts'
import { createDatabase } from '../../support/database.ts'
import { startFaultProxy } from '../../support/faultProxy.ts'

test('health is 200, or 503 while the database is away or does not answer, and needs no token', async () => {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  await using database = await createDatabase('sandbox_template')
  const server = new URL(database.url)
  const proxy = await startFaultProxy({ target: { host: server.hostname, port: Number(server.port) } })
  const databaseUrl = Object.assign(new URL(server), { port: String(proxy.port) }).href
  const sandbox = await startSandbox({ databaseUrl, port: 0, controlToken: 'not-needed-to-ask-for-health' })
  const ask = async () => {
    const answer = await fetch(`${sandbox.url}/_sandbox/health`)
    return [answer.status, await answer.json()]
  }
  const unavailable = [503, { status: 'unavailable', reason: 'The database does not answer.' }]
  try {
    expect(await ask()).toEqual([200, { status: 'ok' }])
    await proxy.setFault({ kind: 'refuse' })
    await expect.poll(ask).toEqual(unavailable)
    await proxy.setFault({ kind: 'hold' })
    expect(await ask()).toEqual(unavailable)
    await proxy.setFault(null)
    await expect.poll(ask).toEqual([200, { status: 'ok' }])
  } finally {
    await sandbox.close()
    await proxy.close()
    vi.restoreAllMocks()
  }
})
