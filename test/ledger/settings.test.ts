import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { raiseProblems, readProblems } from '../../src/ledger/problems.ts'
import {
  applyStrictestSettings,
  type InstanceSettings,
  isNoOtherOutboxFileInUse,
  withdrawInstanceSettings,
} from '../../src/ledger/settings.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const given: Omit<InstanceSettings, 'instanceId'> = {
  host: 'erp-1',
  requests: 100,
  windowMs: 60_000,
  requestTimeoutMs: 30_000,
  keyOnFailure: 'continue',
  given: {},
}

function instance(settings: Partial<InstanceSettings> = {}) {
  const own = { instanceId: randomUUID(), ...given, ...settings }
  return {
    own,
    agree: () => applyStrictestSettings(ledger.pool, own),
    leave: () => withdrawInstanceSettings(ledger.pool, own.instanceId),
  }
}

const problems = async () => (await readProblems(ledger.pool, 100)).map(({ kind, subject }) => `${kind} ${subject}`)

async function holds(): Promise<{ requests: number; windowMs: number }> {
  const { rows } = await ledger.pool.query(
    `select rate_limit as requests, window_ms::float8 as "windowMs" from outboxd.ledger`,
  )
  return rows[0]
}

test('instances with the same settings have no differences', async () => {
  const [one, other] = [instance(), instance()]
  await one.agree()
  expect(await other.agree()).toEqual({ requests: 100, windowMs: 60_000, differences: [], before: null })
  expect(await problems()).toEqual([])
})

test('if settings differ, the smallest limit and the longest window hold, and each difference is a problem', async () => {
  const strict = instance({ requests: 50, windowMs: 60_000 })
  const loose = instance({ requests: 100, windowMs: 120_000, host: 'erp-2' })
  await strict.agree()
  expect(await loose.agree()).toMatchObject({ requests: 50, before: { requests: 50, windowMs: 60_000 } })
  expect(await holds()).toEqual({ requests: 50, windowMs: 120_000 })
  const of = ({ own }: typeof strict) => `settings_differ ${own.instanceId.slice(0, 8)} on ${own.host}:`
  expect((await problems()).sort()).toEqual(
    [strict, loose]
      .flatMap((each) => [`${of(each)} RATE_LIMIT_REQUESTS`, `${of(each)} RATE_LIMIT_WINDOW_SECONDS`])
      .sort(),
  )
})

test('a different request timeout or KEY_ON_FAILURE is a difference, too', async () => {
  await instance().agree()
  const { differences } = await instance({ requestTimeoutMs: 5_000, keyOnFailure: 'block' }).agree()
  expect(differences.map(({ detail }) => detail.split(' ')[0])).toEqual(
    ['REQUEST_TIMEOUT_SECONDS', 'KEY_ON_FAILURE'].flatMap((variable) => [variable, variable]),
  )
})

test('a rolling change of settings is over when the last instance with the old settings has left', async () => {
  const [old, another, fresh] = [instance({ requests: 50 }), instance({ requests: 50 }), instance()]
  for (const each of [old, another, fresh]) await each.agree()
  await old.leave()
  expect(await fresh.agree()).toMatchObject({ requests: 50, differences: expect.objectContaining({ length: 2 }) })
  await another.leave()
  expect(await fresh.agree()).toMatchObject({ requests: 100, differences: [], before: { requests: 50 } })
  expect(await problems()).toEqual([])
})

test('the settings of a killed instance count for a minute, and again if it wakes up late', async () => {
  const [killed, alive] = [instance({ requests: 10 }), instance()]
  await killed.agree()
  expect(await alive.agree()).toMatchObject({ requests: 10 })
  await ledger.pool.query(`update outboxd.instance_setting set said_at = said_at - interval '61 s'`)
  expect(await alive.agree()).toMatchObject({ requests: 100 })
  expect(await killed.agree()).toMatchObject({ requests: 10, before: { requests: 100 } })
})

test('many instances that start at once agree on the smallest limit', async () => {
  const all = Array.from({ length: 6 }, (_, n) => instance({ requests: 20 + n }))
  await Promise.all(all.map(({ agree }) => agree()))
  expect(await holds()).toEqual({ requests: 20, windowMs: 60_000 })
})

test('the settings of a killed instance are deleted after a minute, even if they equal those in force', async () => {
  const [killed, alive] = [instance(), instance()]
  await killed.agree()
  await alive.agree()
  await ledger.pool.query(
    `update outboxd.instance_setting set said_at = said_at - interval '61 s' where instance_id = $1`,
    [killed.own.instanceId],
  )
  await alive.agree()
  const { rows } = await ledger.pool.query('select instance_id as id from outboxd.instance_setting')
  expect(rows).toEqual([{ id: alive.own.instanceId }])
})

test('settings count as long as their instance repeats them', async () => {
  const [one, other] = [instance({ requests: 10 }), instance({ requests: 10 })]
  await one.agree()
  await ledger.pool.query(`update outboxd.instance_setting set said_at = said_at - interval '50 s'`)
  await one.agree()
  await ledger.pool.query(`update outboxd.instance_setting set said_at = said_at - interval '50 s'`)
  await other.agree()
  const { rows } = await ledger.pool.query('select from outboxd.instance_setting')
  expect(rows).toHaveLength(2)
})

test('a `settings_differ` problem of a restored ledger is gone after the next round', async () => {
  const one = instance()
  await one.agree()
  await raiseProblems(ledger.pool, [{ kind: 'settings_differ', subject: 'gone', detail: 'was', retryInMs: null }])
  await one.agree()
  expect(await problems()).toEqual([])
})

test('other settings are compared by their names', async () => {
  await instance({ given: { UNCERTAIN_POLICY: 'hold', 'mapping of data': 'aaaa' } }).agree()
  const { differences } = await instance({ given: { UNCERTAIN_POLICY: 'resend', 'mapping of data': 'bbbb' } }).agree()
  expect(differences.map(({ detail }) => detail).sort()).toEqual([
    'UNCERTAIN_POLICY is hold here, and the instances have hold and resend. Until they agree, each instance keeps its own',
    'UNCERTAIN_POLICY is resend here, and the instances have hold and resend. Until they agree, each instance keeps its own',
    'mapping of data is aaaa here, and the instances have aaaa and bbbb. Until they agree, each instance keeps its own',
    'mapping of data is bbbb here, and the instances have aaaa and bbbb. Until they agree, each instance keeps its own',
  ])
})

test('an instance with changed mapping files is compared by its new files from its next round on', async () => {
  const [one, other] = [
    instance({ given: { 'mapping of data': 'a' } }),
    instance({ given: { 'mapping of data': 'a' } }),
  ]
  await one.agree()
  await other.agree()
  other.own.given = { 'mapping of data': 'b' }
  expect((await other.agree()).differences).toHaveLength(2)
  one.own.given = { 'mapping of data': 'b' }
  expect((await one.agree()).differences).toEqual([])
})

describe('the outbox.yaml in force', () => {
  const file = (digest: string, host = 'erp-1') => instance({ given: { 'outbox.yaml': digest }, host })
  const inForce = async (...digests: string[]) => {
    const held = await Promise.all(digests.map((digest) => isNoOtherOutboxFileInUse(ledger.pool, digest)))
    return digests.filter((_, i) => held[i])
  }
  beforeEach(() => ledger.pool.query('update outboxd.ledger set file_digest = null, file_since = null, file_by = null'))

  test('is that of the running daemons until the last of them has left, and then the next daemon’s', async () => {
    const [old, another, fresh] = [file('old'), file('old'), file('new', 'erp-2')]
    for (const each of [old, another]) await each.agree()
    const { differences } = await fresh.agree()
    expect(differences.map(({ detail }) => detail).sort()).toEqual([
      expect.stringMatching(
        /^outbox.yaml has the digest new here, but the file with old is in use since 20\S+ \(daemon \w+ on erp-1\)\. This daemon captures nothing and writes nothing back/,
      ),
      expect.stringMatching(/^outbox.yaml has the digest old here, and this file is in use since 20/),
      expect.stringMatching(/^outbox.yaml has the digest old here, and this file is in use since 20/),
    ])
    expect(await inForce('old', 'new')).toEqual(['old'])
    await old.leave()
    await fresh.agree()
    expect(await inForce('old', 'new')).toEqual(['old'])
    await another.leave()
    expect((await fresh.agree()).differences).toEqual([])
    expect(await inForce('old', 'new')).toEqual(['new'])
  })

  test('changes at once when all daemons have read the new file', async () => {
    const [one, other] = [file('old'), file('old')]
    for (const each of [one, other]) await each.agree()
    one.own.given = { 'outbox.yaml': 'new' }
    await one.agree()
    expect(await inForce('old', 'new')).toEqual(['old'])
    other.own.given = { 'outbox.yaml': 'new' }
    await other.agree()
    expect(await inForce('old', 'new')).toEqual(['new'])
  })

  test('does not wait for a daemon that was killed and counts as dead', async () => {
    const [killed, fresh] = [file('old'), file('new')]
    await killed.agree()
    await ledger.pool.query(
      `insert into outboxd.instance (id, version, host, beat_at) values ($1, '1', 'erp-1', now() - interval '13 s')`,
      [killed.own.instanceId],
    )
    await fresh.agree()
    expect(await inForce('old', 'new')).toEqual(['new'])
  })
})
