import { expect, test } from 'vitest'
import { raiseRowConflicts } from '../../src/ledger/rowConflicts.ts'
import { countSomeWaitingRowsByType, readBacklog } from '../../src/outbox/backlog.ts'
import { findOutboxTableProblems } from '../../src/outbox/findOutboxTableProblems.ts'
import { LockedRowWatch } from '../../src/outbox/lockedRows.ts'
import {
  findRowsWithoutRecord,
  makeStaleReportsDue,
  readTransactionsNamedInRows,
} from '../../src/outbox/rowsUnderWay.ts'
import { clearStaleProblems, surveyTable } from '../../src/outbox/survey.ts'
import { tryWriteBack } from '../../src/outbox/tryWriteBack.ts'
import { completeAgo, pruneAll } from '../support/retention.ts'
import { setup, tableOf } from './setup.ts'

const values = 'new: new, completed: done, discarded: gone'
const write = 'write: { tx: transaction_id, tx2: transaction_id, code: error_code, err: error }'
const forms = {
  marked: `state: { status: state, queued: taken, ${values} }\n${write}`,
  'end only': `state: { status: state, ${values} }\n${write}`,
  'append-only': 'state: none\nsequence: n',
}

test.each(
  Object.entries(forms),
)('%s: the texts of a row may have different collations, for some of which A and a are equal', async (form, more) => {
  const yaml = `table: source\nid: id\ntype: type\nkey: key\ncreated_at: made\npayload: { columns: [body] }\nfilter: kind in ('sale', 'done') and id <> 'd'\n${more}`
  const { pool, outbox, capture, report } = await setup({
    ddl: `create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
      create collation de (provider = icu, locale = 'de');
      create table source (n bigint generated always as identity unique, id text collate ci primary key, key text collate ci,
        type text collate de default 'data', made timestamptz default now(), body text collate ci default 'x',
        kind text collate ci default 'SALE', state text collate ci default 'NEW', tx text collate ci, tx2 varchar(40) collate de,
        code text collate de, err text collate ci)`,
    yaml,
  })
  expect(await findOutboxTableProblems(pool, tableOf(yaml))).toEqual([])
  await pool.query(`insert into source (id, key) values ('a', 'K'), ('B', 'k'), ('c', 'L'), ('d', 'm')`)
  expect(await tryWriteBack(outbox)).not.toMatchObject({ refusals: [expect.anything()] })
  expect(await readBacklog(outbox)).toMatchObject({ waiting: 3 })
  expect(await countSomeWaitingRowsByType(outbox)).toEqual([{ type: 'data', waiting: 3 }])
  await new LockedRowWatch(outbox).runOnce()
  expect(await capture(2)).toEqual(['a', 'B'])
  expect(await capture()).toEqual(['c'])
  expect(await capture()).toEqual([])
  const told = { transactionId: null, errorCode: null, error: null }
  await report(
    { ...told, outboxId: 'a', state: 'completed', transactionId: 'T' },
    { ...told, outboxId: 'B', state: 'discarded', errorCode: 'E1', error: 'no' },
  )
  await raiseRowConflicts(pool, [{ outboxId: 'A', detail: 'no row has exactly this id' }])
  await clearStaleProblems(outbox, async () => true)
  expect((await pool.query('select from outboxd.problem')).rowCount).toBe(0)
  await surveyTable(outbox, () => true, undefined, 2)
  expect(await findRowsWithoutRecord(outbox)).toEqual([])
  await makeStaleReportsDue(outbox)
  const named = await readTransactionsNamedInRows(outbox, ['a'])
  expect(named).toEqual(form === 'append-only' ? new Map() : new Map([['a', 'T']]))
  await completeAgo(pool, 31)
  await pruneAll(pool, { days: 30, payloadDays: null }, outbox)
  expect(await capture()).toEqual([])
})
