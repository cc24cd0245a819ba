import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Rig, setup } from './rig.ts'

async function started(env: Record<string, string>, idempotency: 'e002' | 'replay' | 'ignore' = 'e002'): Promise<Rig> {
  const rig = await setup({ idempotency })
  onTestFinished(() => rig[Symbol.asyncDispose]())
  await rig.start(env)
  return rig
}

/** Mappings whose requests bring the submission's id as the transaction's. */
async function mappingsWithOwnId(rig: Rig): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'outboxd-mappings-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  const text = await readFile(join(rig.env.MAPPINGS_DIR ?? '', 'data.yaml'), 'utf8')
  await writeFile(join(dir, 'data.yaml'), `${text}  transactionId: \${submission.id}\n`)
  return dir
}

test('resend: after a lost answer it is sent again under the same key, and a service that knows keys has it once', async () => {
  const rig = await started({ UNCERTAIN_POLICY: 'resend' }, 'replay')
  await rig.fault({ kind: 'drop', when: 'after', endpoint: 'submit', times: 1 })
  await rig.insert('resent-')
  const fate = await rig.becomes('resent-', 'completed')
  expect(fate).toMatchObject({ posts: [null, 200], effects: 1, attempt: 2 })
  expect(new Set(fate.keys).size).toBe(1)
})

test('resend: an E002 to the repeat means that the first arrived: uncertain, no new key', async () => {
  const rig = await started({ UNCERTAIN_POLICY: 'resend' }, 'e002')
  await rig.fault({ kind: 'drop', when: 'after', endpoint: 'submit', times: 1 })
  await rig.insert('known-')
  expect(await rig.becomes('known-', 'uncertain')).toMatchObject({ code: 'E002', posts: [null, 409], effects: 1 })
})

test('probe: a lost answer is settled by asking for the id that the request brought', async () => {
  const rig = await setup({ idempotency: 'ignore' })
  onTestFinished(() => rig[Symbol.asyncDispose]())
  await rig.start({ UNCERTAIN_POLICY: 'probe', MAPPINGS_DIR: await mappingsWithOwnId(rig) })
  await rig.fault({ kind: 'drop', when: 'after', endpoint: 'submit', times: 1 })
  await rig.insert('arrived-')
  expect(await rig.becomes('arrived-', 'completed')).toMatchObject({ posts: [null], effects: 1 })
})

test('probe: an id that stays unknown had not arrived, and the record is sent', async () => {
  const rig = await setup({ idempotency: 'ignore' })
  onTestFinished(() => rig[Symbol.asyncDispose]())
  await rig.start({ UNCERTAIN_POLICY: 'probe', MAPPINGS_DIR: await mappingsWithOwnId(rig) })
  await rig.fault({ kind: 'drop', when: 'before', endpoint: 'submit', times: 1 })
  await rig.insert('absent-')
  await until(
    () => rig.pool.query('select from outboxd.submission where probing and unknown_since is not null'),
    ({ rowCount }) => rowCount === 1,
  )
  // A minute passes.
  await rig.pool.query(`update outboxd.submission set unknown_since = unknown_since - interval '61 seconds'`)
  expect(await rig.becomes('absent-', 'completed')).toMatchObject({ posts: [null, 200], effects: 1 })
})

test('probe with a mapping that sends no id: held as uncertain', async () => {
  const rig = await started({ UNCERTAIN_POLICY: 'probe' })
  await rig.fault({ kind: 'drop', endpoint: 'submit', times: 1 })
  await rig.insert('no-id-')
  expect(await rig.becomes('no-id-', 'uncertain')).toMatchObject({ posts: [null] })
})

test('an uncertain record holds back the next of its key, and no other', async () => {
  const rig = await started({})
  await rig.fault({ kind: 'drop', endpoint: 'submit', times: 1 })
  await rig.insert('first-', { key: 'k' })
  await rig.becomes('first-', 'uncertain')
  await rig.insert('second-', { key: 'k' })
  await rig.insert('other-', { key: 'l' })
  await rig.becomes('other-', 'completed')
  expect(await rig.fate('second-')).toMatchObject({ posts: [], attempt: 0 })
})
