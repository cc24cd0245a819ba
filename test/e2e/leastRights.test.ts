import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { command as adopt } from '../../src/commands/adopt.ts'
import { command as check } from '../../src/commands/check.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as erase } from '../../src/commands/erase.ts'
import { command as list } from '../../src/commands/list.ts'
import { command as pause } from '../../src/commands/pause.ts'
import { command as prune } from '../../src/commands/prune.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resume } from '../../src/commands/resume.ts'
import { command as show } from '../../src/commands/show.ts'
import { command as status } from '../../src/commands/status.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { testContext } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon.ts'
import { dropRole, grantRole } from '../support/grantRole.ts'
import { openForFile } from '../support/openForFile.ts'
import { startProgram } from '../support/program.ts'
import { setup } from './faults/harness.ts'

/** Roles that own nothing. The grants of `migrate --print-grants` are enough, and allow no more. */

const harness = openForFile(() => setup())
/** Environments of the two roles; they differ in DATABASE_URL. */
let runs: Record<string, string>
let reads: Record<string, string>
const suffix = randomBytes(4).toString('hex')
const roles = { run: `Run "${suffix}"`, read: `read_${suffix}` }

beforeAll(async () => {
  await harness.pool.query('create table customer (name text); create sequence public.invoice')
  // A namesake in the search path. Without a fixed search path, outboxd would call it to count requests by minute.
  await harness.pool.query(`create schema shadow; grant usage on schema shadow to public;
    create function shadow.date_trunc(text, timestamptz) returns timestamptz language plpgsql as $$ begin raise 'shadowed'; end $$`)
  // Rights that PUBLIC has by Postgres's defaults, and outboxd does not need.
  await harness.pool.query(`do $$ begin execute format('revoke temporary on database %I from public', current_database()); end $$;
    revoke execute on function lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) from public`)
  runs = await grantRole(harness, roles.run, {})
  await harness.pool.query(`alter role ${pg.escapeIdentifier(roles.run)} set search_path = shadow, pg_catalog, public`)
  reads = await grantRole(harness, roles.read, { readOnly: true })
})
afterAll(async () => {
  for (const role of Object.values(roles)) await dropRole(harness.pool, role)
})

async function says(
  env: Record<string, string>,
  command: (context: ReturnType<typeof testContext>) => Promise<number>,
): Promise<{ code: number; printed: string; messages: string }> {
  const context = testContext(env)
  const code = await command(context)
  return { code, printed: context.printed(), messages: context.messages() }
}

/** Runs each statement as a role. @returns the SQLSTATE of each */
async function refusals(env: Record<string, string>, statements: readonly string[]): Promise<string[]> {
  const client = new pg.Client(env.DATABASE_URL)
  await client.connect()
  try {
    const answers: string[] = []
    for (const statement of statements)
      answers.push(
        await client.query(statement).then(
          () => `${statement}: done`,
          (error: { code: string }) => error.code,
        ),
      )
    return answers
  } finally {
    await client.end()
  }
}

const insufficientPrivilege = '42501'
const raisedByTrigger = 'P0001'

test('only the printed grants: everything works, nothing is refused', async () => {
  const denied: string[] = []
  const onLine = (line: string) => {
    if (/permission denied|must be owner|42501|shadowed/.test(line)) denied.push(line)
  }
  await using _daemon = await startDaemonProcess(runs, { onLine })
  await harness.insert('granted-')
  await harness.becomes('granted-', 'completed')
  await harness.fault({ kind: 'answer', status: 422, endpoint: 'submit', times: 2 })
  const first = await harness.insert('refused-')
  await harness.becomes('refused-', 'rejected')
  const second = await harness.insert('given up-')
  await harness.becomes('given up-', 'rejected')
  expect(await says(runs, (context) => replay.action(context, [`outbox:${first}`], { yes: true }))).toMatchObject({
    code: 0,
  })
  await harness.becomes('refused-', 'completed')
  expect(
    await says(runs, (context) => discard.action(context, [`outbox:${second}`], { reason: 'gone', yes: true })),
  ).toMatchObject({ code: 0 })
  await harness.becomes('given up-', 'discarded')
  expect(await says(runs, (context) => pause.action(context, { reason: 'a look' }))).toMatchObject({ code: 0 })
  expect(await says(runs, (context) => resume.action(context, {}))).toMatchObject({ code: 0 })
  expect(await says(runs, (context) => prune.action(context, {}))).toMatchObject({ code: 3 })
  await harness.pool.query(
    `update outboxd.submission set ended_at = ended_at - interval '100 days' where state = 'discarded'`,
  )
  await harness.insert('of a person', { key: 'person' })
  await harness.becomes('of a person', 'completed')
  expect(
    await says(runs, (context) => erase.action(context, { key: 'person', reason: 'asked', as: 'officer', yes: true })),
  ).toMatchObject({ code: 0 })
  const pruned = await says(runs, (context) => prune.action(context, {}))
  expect([0, 3]).toContain(pruned.code) // the daemon may have pruned before
  await harness.insert('last-')
  await harness.becomes('last-', 'completed')
  const checked = await says(runs, (context) => check.action(context, {}))
  expect(checked).toMatchObject({ code: 0, printed: expect.stringMatching(/^ok {7}ledger/m) })
  expect((await says(runs, (context) => status.action(context, {}))).printed).toMatch(/^All is well/)
  expect(denied).toEqual([])
})

test('the role of the daemon may run adopt while no daemon runs', async () => {
  const adopts = (env: Record<string, string>, options: OptionsOf<typeof adopt>) =>
    says({ ...runs, ...env }, (context) => adopt.action(context, { ...options, yes: true, as: 'operator' }))
  const moved = { SERVICE_CLIENT_ID: 'another-client' }
  expect(await adopts(moved, { same: true, dryRun: true })).toMatchObject({ code: 0 })
  expect(await adopts(moved, { same: true })).toMatchObject({ code: 0 })
  expect(await adopts({}, { same: true })).toMatchObject({ code: 0 })
})

test('the role owns nothing: it changes only the outbox columns that are ours', async () => {
  const statements = [
    'select from customer',
    'insert into customer default values',
    `insert into outbox (type, payload) values ('data', '{}')`,
    `update outbox set payload = '{}'`,
    `update outbox set type = 'order'`,
    'delete from outbox',
    'truncate outbox',
    'drop table outbox',
    'alter table outbox disable trigger all',
    'create table outboxd.more ()',
    'drop table outboxd.submission_event',
    `delete from outboxd.migration`,
    'delete from outboxd.ledger',
    'delete from outboxd_jobs.queue',
    'insert into outboxd_jobs.schedule (name) values (null)',
    'select lo_create(0)',
    'create temporary table more ()',
    `select nextval('public.invoice')`,
    'create schema more',
  ]
  expect(await refusals(runs, statements)).toEqual(statements.map(() => insufficientPrivilege))
})

test('the role can neither change nor delete an entry of the log', async () => {
  const ofErased = 'where submission_id in (select id from outboxd.submission where erased_at is not null)'
  const refusedByTrigger = [
    `update outboxd.submission_event set who = 'another'`,
    `update outboxd.submission_event set message = 'ordered'`,
    `update outboxd.submission_event set detail = detail || '{"reason": "ordered"}'`,
    `update outboxd.submission_event set at = at - interval '1 day' ${ofErased}`,
    `update outboxd.submission_event set detail = '{"reason": "ordered"}' ${ofErased}`,
  ]
  expect(await refusals(runs, refusedByTrigger)).toEqual(refusedByTrigger.map(() => raisedByTrigger))
  const refusedByGrant = [
    'delete from outboxd.submission_event',
    'truncate outboxd.submission_event',
    `update outboxd.operator_act set who = 'another'`,
    'delete from outboxd.operator_act',
    'truncate outboxd.operator_act',
    'alter table outboxd.submission_event disable trigger append_only',
    'alter table outboxd.operator_act disable trigger append_only',
    'create or replace function outboxd.refuse() returns trigger language plpgsql as $$ begin return new; end $$',
    'set session_replication_role = replica',
  ]
  expect(await refusals(runs, refusedByGrant)).toEqual(refusedByGrant.map(() => insufficientPrivilege))
})

test.each([
  [
    'pause',
    ['--reason', 'x'],
    /permission denied for table \w+ \(42501\)\. `pause` changes data, .*`outboxd migrate --print-grants ROLE` prints\. On the ledger’s table operator_act that is select, insert\./,
  ],
] as const)('a read-only role gets a message about the right that %s needs', async (command, options, message) => {
  await using program = startProgram({ args: [command, ...options], env: reads })
  const { code, stderr } = await program.ended()
  expect(code).toBe(1)
  expect(stderr).toMatch(message)
})

test('a read-only role can run status, list and show, and cannot write', async () => {
  expect((await says(reads, (context) => status.action(context, {}))).printed).toMatch(/^ended +4 completed/m)
  expect((await says(reads, (context) => list.action(context, { state: 'completed' }))).printed).toContain('completed')
  expect((await says(reads, (context) => show.action(context, 'outbox:1', {}))).code).toBe(0)
  const statements = [
    'update outbox set status = status',
    'insert into outbox (type, payload) values (null, null)',
    'delete from outboxd.submission',
    `update outboxd.submission set state = state`,
    `insert into outboxd.pause (reason, detail) values ('operator', 'x')`,
    `delete from outboxd_jobs.job`,
    'select from customer',
  ]
  expect(await refusals(reads, statements)).toEqual(statements.map(() => insufficientPrivilege))
})

const looks = [
  'status --json',
  'list',
  'list --state completed --csv',
  'list --by-cause',
  'list --containing asked-',
  'list --transaction t',
  'show REJECTED',
  'audit --csv',
  'audit --containing asked-',
  'audit --sum',
  'describe outbox',
  'map --outbox ROW',
  'map --all-new',
]

const changes = [
  ...looks,
  'check',
  'pause --reason x',
  'resume --all',
  'discover --only token-unit --yes --yes-this-is-a-test-environment',
  'adopt --same --yes',
  'prune',
  'erase --key person --reason asked --yes',
  'replay REJECTED --refresh --yes',
  'replay --even-if-arrived --new-key --yes',
  'resolve UNCERTAIN --arrived t --unchecked --yes',
  'resolve UNCERTAIN --take-back --yes',
  'discard UNCERTAIN --reason x --dry-run',
  'resolve UNCERTAIN --not-arrived --yes',
  'recover --dry-run',
  'recover --yes',
]

test('every command runs with the rights that are printed for it', async () => {
  const daemon = await startDaemonProcess(runs)
  await harness.fault({ kind: 'answer', status: 422, endpoint: 'submit', times: 1 })
  const rejected = await harness.insert('asked-')
  await harness.becomes('asked-', 'rejected')
  await harness.fault({ kind: 'answer', status: 502, endpoint: 'submit', times: 1 })
  const uncertain = await harness.insert('lost-')
  await harness.becomes('lost-', 'uncertain')
  await daemon.stop()
  // Its request can no longer arrive.
  await harness.pool.query(`update outboxd.submission set sent_at = sent_at - interval '1 min'`)
  const named = (word: string) =>
    word.replace('REJECTED', `outbox:${rejected}`).replace('UNCERTAIN', `outbox:${uncertain}`).replace('ROW', rejected)
  for (const [env, commands] of [
    [reads, looks],
    [runs, changes],
  ] as const)
    for (const words of commands) {
      await using program = startProgram({ args: words.split(' ').map(named), env })
      const { code, stdout, stderr } = await program.ended()
      expect.soft([0, 3], `${words}\n${stderr}${stdout}`).toContain(code) // done, or nothing found
    }
})
