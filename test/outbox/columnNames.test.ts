import pg from 'pg'
import { expect, test } from 'vitest'
import type { RowStatus } from '../../src/model/outbox.ts'
import { countSomeWaitingRowsByType, readBacklog } from '../../src/outbox/backlog.ts'
import { findOutboxTableProblems } from '../../src/outbox/findOutboxTableProblems.ts'
import { LockedRowWatch } from '../../src/outbox/lockedRows.ts'
import { readPruneOverdueMs } from '../../src/outbox/prune.ts'
import {
  locateUncapturedRow,
  readFirstWaitingRowsThatFit,
  readRecordWithoutQueriedContent,
} from '../../src/outbox/readRows.ts'
import {
  findRowsWithoutRecord,
  makeStaleReportsDue,
  readTransactionsNamedInRows,
} from '../../src/outbox/rowsUnderWay.ts'
import { countRowsBeforeStart, findStartQuestion } from '../../src/outbox/startPosition.ts'
import { clearStaleProblems, surveyTable } from '../../src/outbox/survey.ts'
import { tryWriteBack } from '../../src/outbox/tryWriteBack.ts'
import { completeAgo, pruneAll } from '../support/retention.ts'
import { setup, tableOf } from './setup.ts'

/** The ERP's columns may be named like anything in our statements, whatever they are for. */

const words = (text: string): string[] => text.split(/\s+/)

const names = [
  ...words(`o r s c a k h id held written unheld given before same open built waiting status state rows part hidden
    standing pruned stale type outboxId transactionId isBehind inOrder created createdAt raw bytes as select from
    where order user group row table limit null true current_user session_user end case`),
  'two words',
  ...words(
    `a"b it's $1 :x outboxd outboxd_first outboxd_marked position pid locktype transactionid outbox_id row_created`,
  ),
]

const roles = [
  'id',
  'type',
  'key',
  'made',
  'body',
  'kind',
  'state',
  'tx',
  'code',
  'error',
  'at',
  'what',
  'other',
] as const
const q = pg.escapeIdentifier
const y = (text: string) => JSON.stringify(text)

const forms = {
  marked: (n: string) => `{ status: ${n}, new: new, queued: taken, completed: done, discarded: gone }`,
  'end only': (n: string) => `{ status: ${n}, new: new, completed: done, discarded: gone }`,
  'append-only': () => 'none',
}

test.each(
  Object.keys(forms),
)('%s: columns with the names of aliases and keywords are read and written', async (form) => {
  const first = { marked: 0, 'end only': 21, 'append-only': 42 }[form] ?? 0
  const order = names.map((_, n) => names[(n * 7 + first) % names.length] as string)
  const name = Object.fromEntries(roles.map((role, i) => [role, order[i] as string])) as Record<
    (typeof roles)[number],
    string
  >
  const others = order.slice(roles.length)
  const table = order.at(-1) as string
  const written =
    form === 'append-only'
      ? ''
      : `write: { ${y(name.tx)}: transaction_id, ${y(name.code)}: error_code, ${y(name.error)}: error, ${y(name.at)}: now, ${y(name.what)}: state }\n`
  const yaml = `table: ${y(table)}
id: ${y(name.id)}
type: ${y(name.type)}
key: ${y(name.key)}
created_at: ${y(name.made)}
payload: { columns: { a: ${y(name.body)}, b: ${y(name.other)}, c: ${y(name.id)} } }
filter: ${y(`${q(name.kind)} in ('sale', 'done')`)}
state: ${forms[form as keyof typeof forms](y(name.state))}
${form === 'append-only' ? `sequence: ${y(name.id)}\n` : ''}${written}`
  const { pool, outbox, capture, captureRecords, report } = await setup({
    ddl: `create table ${q(table)} (${q(name.id)} bigint generated always as identity primary key, ${q(name.type)} text default 'data',
      ${q(name.key)} text default 'k', ${q(name.made)} timestamptz default now(), ${q(name.body)} text default 'body',
      ${q(name.kind)} text default 'sale', ${q(name.state)} text default 'new', ${q(name.tx)} text, ${q(name.code)} text,
      ${q(name.error)} text, ${q(name.at)} timestamptz, ${q(name.what)} text, ${[name.other, ...others].map((each) => `${q(each)} text default 'theirs'`).join(', ')})`,
    yaml,
  })
  await pool.query(`insert into ${q(table)} (${q(name.kind)}) values ('sale'), ('done'), ('draft'), ('sale')`)
  expect(await findOutboxTableProblems(pool, tableOf(yaml))).toEqual([])
  expect((await tryWriteBack(outbox)).kind).toBe(form === 'append-only' ? 'never-written' : 'tried')
  expect(await readBacklog(outbox)).toMatchObject({ waiting: 3 })
  expect(await countSomeWaitingRowsByType(outbox)).toEqual([{ type: 'data', waiting: 3 }])
  expect((await readFirstWaitingRowsThatFit(outbox, 10)).rows).toHaveLength(3)
  const locate = (outboxId: string) => locateUncapturedRow(outbox, { outboxId, key: 'k' })
  expect(await locate('1')).toEqual({ place: 'waits', firstOfKey: '1' })
  expect(await locate('3')).toEqual({ place: 'left out by filter', firstOfKey: null })
  await findStartQuestion(outbox)
  await countRowsBeforeStart(outbox)
  await new LockedRowWatch(outbox).runOnce()
  const records = await captureRecords(2)
  expect(records).toMatchObject(
    [1, 2].map((c) => ({
      outboxId: String(c),
      key: 'k',
      type: 'data',
      payload: JSON.stringify({ a: 'body', b: 'theirs', c }),
    })),
  )
  expect(await capture()).toEqual(['4'])
  const told = (outboxId: string, state: RowStatus['state'], more: Partial<RowStatus> = {}): RowStatus => ({
    ...{ outboxId, state, transactionId: null, errorCode: null, error: null },
    ...more,
  })
  expect(
    await report(told('1', 'completed', { transactionId: 'T1' }), told('2', 'discarded', { error: 'no' })),
  ).toEqual(['written', 'written'])
  if (form !== 'append-only') {
    const { rows } = await pool.query(
      `select ${[name.state, name.tx, name.error, name.what].map(q).join(', ')}, ${[name.other, ...others].map(q).join(' || ')} as rest from ${q(table)} order by ${q(name.id)} limit 2`,
    )
    expect(rows.map((row) => [row[name.state], row[name.tx], row[name.error], row[name.what]])).toEqual([
      ['done', 'T1', null, 'completed'],
      ['gone', null, 'no', 'discarded'],
    ])
    expect(rows[0].rest).toBe('theirs'.repeat(others.length + 1))
  }
  expect((await readRecordWithoutQueriedContent(outbox, '1'))?.type).toBe('data')
  await surveyTable(outbox, () => true)
  await clearStaleProblems(outbox, async () => true)
  expect(await findRowsWithoutRecord(outbox)).toEqual([])
  await makeStaleReportsDue(outbox)
  if (form !== 'append-only') expect(await readTransactionsNamedInRows(outbox, ['1'])).toEqual(new Map([['1', 'T1']]))
  await completeAgo(pool, 31)
  await readPruneOverdueMs(outbox, { days: 30, payloadDays: null })
  await pruneAll(pool, { days: 30, payloadDays: null }, outbox)
})
