import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { command as list } from '../../src/commands/list.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import type { ListedSubmission } from '../../src/ledger/operator/selectSubmissions.ts'
import { parseAnswersFile } from '../../src/operations/answersFile.ts'
import { submissionCsv } from '../../src/operations/submissionCsv.ts'
import { failedE003, openFixtureForFile, uncertain } from '../commands/fixture.ts'
import { json, startServer } from '../service/support.ts'
import type { GivenChange } from '../support/change.ts'
import { claim, spendLimit } from '../support/ledger.ts'
import { until } from '../support/until.ts'

const id = '0199e3a1-7c2f-7000-8000-1d2f3a4b5c6d'

const linesOf = (text: string) => {
  const read = parseAnswersFile(text)
  return read.kind === 'value' ? read.lines : read.problems
}

const header = 'outbox_id,submission_id,arrived_as,attempts'

test('columns are found by name in any order, and lines without an answer are counted', () => {
  expect(parseAnswersFile('State,Attempts,Arrived_as,Outbox_ID\nuncertain,2,tx-1,1\nuncertain,1,,2\n')).toEqual({
    kind: 'value',
    lines: [{ line: 2, outboxId: '1', submissionId: null, arrivedAs: 'tx-1', attempts: 2, listedAs: null }],
    unanswered: 1,
  })
})

test.each([';', '\t'])('a file with %j between cells, CRLF line ends and a byte order mark is read', (separator) => {
  const text = `\ufeff${header}\r\n4711,,tx-1,1\r\n\r\noutbox:4712,,Not Arrived,2\r\n`
  expect(linesOf(text.replaceAll(',', separator))).toMatchObject([
    { line: 2, outboxId: '4711', arrivedAs: 'tx-1' },
    { line: 4, outboxId: '4712', arrivedAs: null },
  ])
})

test('a file that `list --csv` wrote is read back unchanged, even with formulas, quotes and line breaks in cells', () => {
  const outboxId = '=HYPERLINK("x"),1'
  const submission = { id, outboxId, key: '+1', error: '"a",\nb', state: 'uncertain', attempts: 2 }
  const times = { recordedMs: 0, capturedMs: 0, sentMs: 0, acceptedMs: null, endedMs: 0, sinceMs: 0 }
  const csv = submissionCsv([{ ...submission, ...times, type: 'data' } as ListedSubmission])
  expect(parseAnswersFile(csv)).toEqual({ kind: 'value', lines: [], unanswered: 1 })
  const filled = csv.replace(',,uncertain', ',tx-1,uncertain')
  expect(linesOf(filled)).toEqual([
    { line: 2, outboxId, submissionId: id, arrivedAs: 'tx-1', attempts: 2, listedAs: null },
  ])
})

test('a value in transaction_id is not an answer: only arrived_as is', () => {
  const text = `${header},transaction_id\n1,,,1,tx-1\n2,,tx-2,1,tx-3\n`
  expect(parseAnswersFile(text)).toMatchObject({ lines: [{ arrivedAs: 'tx-2', listedAs: 'tx-3' }], unanswered: 1 })
})

test.each([
  'yes',
  'No',
  'arrived',
  'ok',
  'completed',
])('the word %s in arrived_as is refused because it is not a transaction id', (word) => {
  expect(linesOf(`${header}\n1,,${word},1\n`)).toEqual([
    expect.stringContaining(`line 2: ${word} is not a transaction id`),
  ])
})

test('every wrong line is reported with its number', () => {
  const lines = [
    '1,,tx-1,1',
    '2,,unknown,1',
    ',,tx-2,1',
    '3,,a b,1',
    '4,,tx-3,1,x',
    ',12,tx-1,1',
    `,${id},tx-1,`,
    ',,,',
  ]
  expect(linesOf(`${header}\n${lines.join('\n')}\n`)).toEqual([
    expect.stringMatching(/^line 3: unknown is not a transaction id.* leave the cell empty if that is not known$/),
    'line 4: the line names no record',
    expect.stringMatching(/^line 5: a transaction id has no blanks/),
    'line 6: the line has 5 columns, the header has 4',
    'line 7: 12 is not a submission id',
    'line 8: attempts "" is not a number',
  ])
})

test.each([
  ['', 'the file is empty'],
  ['4711,tx-1\n', 'line 1: the header has no column outbox_id: give a file that `outboxd list --csv` made'],
  ['outbox_id,arrived_as\n', 'line 1: the header has no column attempts: give a file that `outboxd list --csv` made'],
  ['submission_id,state\n', 'line 1: the header has no column arrived_as: give a file that `outboxd list --csv` made'],
  [`${header},attempts\n`, 'line 1: two columns are named attempts: keep one'],
  ['1,"tx\n', expect.stringContaining('this is not a CSV file: Quote Not Closed')],
  [`${header}\n${'1,,tx,1\n'.repeat(10_001)}`, 'the file has 10001 lines: give at most 10000'],
])('a file that cannot be used is refused with the reason: %#', (text, problem) => {
  expect(parseAnswersFile(text)).toEqual({ kind: 'invalid', problems: [problem] })
})

describe('`resolve --file`', () => {
  const fixture = openFixtureForFile()

  /** A service that knows transactions whose ids begin with `tx-`. `asked` counts its requests by method. */
  async function service(tokenAfterMs = 0) {
    const { received, url } = await startServer(async ({ url: path }, response) => {
      if (path.endsWith('/oauth/token')) await after(tokenAfterMs)
      if (path.endsWith('/oauth/token')) return json(response, 200, { access_token: 'abc', expires_in: 3600 })
      const transactionId = path.split('/').at(-1) ?? ''
      return transactionId.startsWith('tx-')
        ? json(response, 200, { transactionId, status: 'pending' })
        : json(response, 404, { message: 'no such transaction' })
    })
    const env = {
      SERVICE_BASE_URL: url,
      SERVICE_AUTH_URL: url,
      SERVICE_CLIENT_ID: 'client',
      SERVICE_CLIENT_SECRET: 'secret',
    }
    return { asked: (method: string) => received.filter((each) => each.method === method).length, env }
  }

  function fileOf(text: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'outboxd-answers-'))
    writeFileSync(join(folder, 'ask.csv'), text)
    return join(folder, 'ask.csv')
  }

  /** A file of answers from lines `outbox id,answer`, about records that were sent once. */
  const answers = (lines: string) => `outbox_id,arrived_as,attempts\n${lines.replace(/\n/g, ',1\n')}`

  async function run(
    text: string,
    options: OptionsOf<typeof resolve> = {},
    { env = {}, input = null }: { env?: Record<string, string>; input?: string | null } = {},
  ) {
    const context = fixture.context(input, env)
    const code = await resolve.action(context, undefined, { file: fileOf(text), ...options })
    return { code, printed: context.printed(), messages: context.messages() }
  }

  const states = async () => {
    const { rows } = await fixture.ledger.pool.query<{
      outbox_id: string
      state: string
      transaction_id: string | null
    }>('select outbox_id, state, transaction_id from outboxd.submission order by outbox_id')
    return rows.map(({ outbox_id, state, transaction_id }) => [outbox_id, state, transaction_id].join(' ').trim())
  }

  test('a row whose id list --csv escaped as a formula is settled by the escaped id', async () => {
    await fixture.end(uncertain, { outboxId: 'x;=1+1;y' })
    const listed = fixture.context()
    await list.action(listed, { state: 'uncertain', csv: true })
    expect(listed.printed()).toContain(`"x;'=1+1;y"`)
    const text = listed.printed().replace(`"x;'=1+1;y",`, `"x;'=1+1;y",not-arrived`)
    expect(await run(text, { yes: true })).toMatchObject({ code: 0 })
    expect(await states()).toEqual(['x;=1+1;y queued'])
  })

  test('a filled-in file of list --csv is settled after a preview and a yes', async () => {
    const { env, asked } = await service()
    for (const outboxId of ['1', '2', '3']) await fixture.end(uncertain, { outboxId })
    const listed = fixture.context()
    await list.action(listed, { state: 'uncertain', csv: true })
    const filled = listed.printed().replace(/^1,,/m, '1,tx-1,').replace(/^2,,/m, '2,not-arrived,')

    const dry = await run(filled, { dryRun: true }, { env })
    expect(dry.code).toBe(0)
    expect(dry.printed).toMatch(/^This would settle 2 records:\n {2}1 arrived, if the service knows their ids\n/)
    expect(dry.printed).toContain('1 line without an answer, ignored')
    expect((await run(filled, {}, { env })).code).toBe(4)
    expect((await run(filled, {}, { env, input: 'n\n' })).code).toBe(4)
    expect(await states()).toEqual(['1 uncertain', '2 uncertain', '3 uncertain'])
    expect(asked('GET')).toBe(0)

    const { code, messages } = await run(filled, {}, { env, input: 'y\n' })
    expect(messages).toMatch(
      /LINE +OUTBOX +STATE +ANSWER\n2 +1 +uncertain +arrived as tx-1\n3 +2 +uncertain +not arrived/,
    )
    expect(messages).toContain('Settled 2 records.')
    expect(code).toBe(0)
    expect(await states()).toEqual(['1 accepted tx-1', '2 queued', '3 uncertain'])
    expect(await fixture.ledger.polled()).toHaveLength(1)
  })

  test('the service is asked once for each id, and a record whose id it does not know is left alone', async () => {
    const { env, asked } = await service()
    for (let i = 1; i <= 7; i++) await fixture.end(uncertain, { outboxId: String(i) })
    const { code, printed } = await run(
      answers(`1,tx-1\n2,nope\n${[3, 4, 5, 6, 7].map((n) => `${n},tx-${n}\n`).join('')}`),
      { yes: true, json: true },
      { env },
    )
    expect(code).toBe(1)
    expect([asked('GET'), asked('POST')]).toEqual([7, 7])
    const said = JSON.parse(printed)
    expect(said.settled).toHaveLength(6)
    expect(said).toMatchObject({
      dryRun: false,
      leftAlone: [{ line: 3, outboxId: '2', reason: expect.stringContaining('does not know transaction nope') }],
      unanswered: 0,
    })
    expect(await fixture.answeredRequests()).toBe(14)
  })

  test('a service that does not answer is not asked about every line, and with --unchecked about none', async () => {
    const { env } = await service()
    const away = { ...env, SERVICE_BASE_URL: 'http://127.0.0.1:1', SERVICE_AUTH_URL: 'http://127.0.0.1:1' }
    const text = answers(Array.from({ length: 12 }, (_, i) => `${i},tx-${i}\n`).join(''))
    for (let i = 0; i < 12; i++) await fixture.end(uncertain, { outboxId: String(i) })
    const { code, messages } = await run(text, { yes: true }, { env: away })
    expect(code).toBe(1)
    expect(messages).toContain('line 13: the service was not asked, because it did not answer about an earlier line')
    expect(await fixture.ledger.countStates()).toEqual({ uncertain: 12 })
    expect((await run(text, { yes: true, unchecked: true })).code).toBe(0)
    expect(await fixture.ledger.countStates()).toEqual({ accepted: 12 })
  })

  test('a run of more than two seconds prints its progress', async () => {
    const { env } = await service(2_100)
    for (let i = 0; i < 2; i++) await fixture.end(uncertain, { outboxId: String(i) })
    const text = answers(Array.from({ length: 2 }, (_, i) => `${i},tx-${i}\n`).join(''))
    const { code, messages } = await run(text, { yes: true }, { env })
    expect(code).toBe(0)
    expect(messages).toContain('Settled 1 of 2 …\n')
  })

  test.each([
    'not-arrived',
    'Not arrived',
    'not_arrived',
    'not\u2011arrived',
    'not\u2013arrived',
  ])('%s, as spreadsheets write it, means that the record did not arrive', async (answer) => {
    await fixture.end(uncertain, { outboxId: '1' })
    expect(await run(answers(`1,${answer}\n`), { yes: true, unchecked: true })).toMatchObject({ code: 0 })
    expect(await states()).toEqual(['1 queued'])
  })

  test('after an error halfway, the message counts the settled records and says to give the file again', async () => {
    const ids = ['1', '2', '3']
    for (const outboxId of ids) await fixture.end(uncertain, { outboxId })
    const { pool } = fixture.ledger
    await pool.query(`create function refuse() returns trigger language plpgsql as $$ begin raise 'disk full'; end $$;
    create trigger refuse before update on outboxd.submission for each row when (old.outbox_id = '2') execute function refuse()`)
    onTestFinished(async () => void (await pool.query('drop function refuse cascade')))
    const text = answers(ids.map((id) => `${id},not-arrived\n`).join(''))
    const context = fixture.context()
    await expect(resolve.action(context, undefined, { file: fileOf(text), yes: true })).rejects.toThrow('disk full')
    expect(context.messages()).toMatch(/Stopped by an error after 1 of 3 records\. Give the file again\.\n$/)
    expect(await states()).toEqual(['1 queued', '2 uncertain', '3 uncertain'])
  })

  test('resolve waits while no request is free, and can be interrupted', async () => {
    const { env, asked } = await service()
    await fixture.end(uncertain, { outboxId: '1' })
    await spendLimit(fixture.ledger.pool)
    const context = fixture.context(null, env)
    const settled = resolve.action(context, undefined, { file: fileOf(answers('1,tx-1\n')), yes: true })
    await until(context.messages, (said) => said.includes('Waiting for a free request of the budget'))
    context.abort()
    expect(await settled).toBe(1)
    expect(context.messages()).toContain('Interrupted before the rest. Give the file again.')
    expect(asked('GET')).toBe(0)
  })

  describe('nothing is written while a line is wrong:', () => {
    async function wrong(text: string) {
      const before = await states()
      const { code, messages } = await run(text, { yes: true, unchecked: true })
      expect(code).toBe(2)
      expect(messages).toContain('Nothing was changed. Correct the file and give it again')
      expect(await states()).toEqual(before)
      return messages
    }
    beforeEach(async () => {
      await fixture.end({ state: 'completed', transactionId: 'tx-77' }, { outboxId: '77' })
      await fixture.end(uncertain, { outboxId: '1' })
      await fixture.end(uncertain, { outboxId: '2' })
    })

    test.each([
      ['a record that does not exist', '1,tx-1\n99,tx-2\n', 'ask.csv, line 3: there is no record outbox:99'],
      ['a record that is named twice', '1,tx-1\n1,not-arrived\n', 'line 3: outbox:1 is already on line 2'],
      ['an id that is given twice', '1,tx-1\n2,tx-1\n', 'line 3: tx-1 is already on line 2'],
      ['an id that is another record’s', '1,tx-77\n', 'line 2: tx-77 is the transaction of outbox:77'],
      ['an invalid answer', '1,tx-1\n2,yes it did\n', 'line 3: a transaction'],
    ])('a contradictory answer file (%s): nothing is written', async (_, text, message) => {
      expect(await wrong(answers(text))).toContain(message)
    })

    test.each([
      ['that it did not arrive, and its id', 'outbox_id,arrived_as,attempts,transaction_id\n1,not-arrived,1,tx-9\n'],
      ['two different ids', 'outbox_id,transaction_id,arrived_as,attempts\n2,,,\n1,tx-9,tx-1,1\n'],
    ])('a line that contradicts itself: %s', async (_, text) => {
      const line = text.split('\n').length - 1
      expect(await wrong(text)).toContain(`line ${line}: the line contradicts itself about outbox:1: `)
      expect(await wrong(text)).toContain('transaction_id says tx-9')
    })

    test('columns that were sorted separately', async () => {
      const { rows } = await fixture.ledger.pool.query("select id from outboxd.submission where outbox_id = '1'")
      const messages = await wrong(`outbox_id,arrived_as,submission_id,attempts\n2,tx-1,${rows[0].id},1\n`)
      expect(messages).toContain(
        'is outbox:1, not outbox:2: was only one column sorted, or did a spreadsheet change the id?',
      )
    })
  })

  test('a record that cannot be settled is left alone, and the same file can be given again', async () => {
    await fixture.end(uncertain, { outboxId: '1' })
    await fixture.end(failedE003, { outboxId: '2' })
    const first = await run(answers('1,tx-1\n2,tx-2\n'), { yes: true, unchecked: true })
    expect(first.code).toBe(1)
    expect(first.messages).toContain(
      'line 3: outbox:2 is failed, not uncertain: there is nothing to settle. `outboxd replay` sends it again',
    )
    const again = await run(answers('1,tx-1\n2,tx-2\n'), { yes: true, unchecked: true })
    expect(again.messages).toContain('line 2: outbox:1 is already accepted as tx-1')
    expect(await states()).toEqual(['1 accepted tx-1', '2 failed'])
  })

  /** Sends the record again, and leaves it uncertain. */
  async function sendAgain(id: string) {
    await claim(fixture.ledger.dispatch(), { submissions: 1 })
    await fixture.ledger.pool.query(
      `update outboxd.submission set state = 'uncertain', claim_id = null, instance_id = null, ended_at = now() where id = $1`,
      [id],
    )
  }

  describe('an answer from before the record was sent again is not believed', () => {
    test('if it was queued and sent again', async () => {
      const id = await fixture.end(uncertain, { outboxId: '1' })
      const listed = fixture.context()
      await list.action(listed, { state: 'uncertain', csv: true })
      const filled = listed.printed().replace(/^1,,/m, '1,not-arrived,')
      expect((await run(filled, { yes: true })).code).toBe(0)
      await sendAgain(id)
      const { code, messages } = await run(filled, { yes: true })
      expect(code).toBe(1)
      expect(messages).toContain('line 2: outbox:1 was sent again after the file was made: make a new file')
    })

    test('if it was replayed', async () => {
      const lost: GivenChange = { state: 'failed', error: '404', transactionId: 'tx-1', mayHaveArrived: true }
      const id = await fixture.end(lost, { outboxId: '1' })
      expect(await replay.action(fixture.context(), ['outbox:1'], { yes: true })).toBe(0)
      await sendAgain(id)
      expect((await run(answers('1,not-arrived\n'), { yes: true })).code).toBe(1)
      expect(await states()).toEqual(['1 uncertain'])
    })
  })

  test('an older version of a document is not sent after a newer one, and the message names its line', async () => {
    const ofDocument = { document: '5', key: '5' }
    await fixture.end({ state: 'failed', error: '500', mayHaveArrived: true }, { ...ofDocument, outboxId: '1' })
    await fixture.end({ state: 'completed', transactionId: 'tx-2' }, { ...ofDocument, outboxId: '2', body: '{}' })
    const { code, messages } = await run(answers('1,not-arrived\n'), { yes: true })
    expect(code).toBe(1)
    expect(messages).toContain('line 2: outbox:1 is older than outbox:2, the newest version of its document')
    expect(await states()).toEqual(['1 failed', '2 completed tx-2'])
  })

  describe('a decision of an operator since the file was made is kept', () => {
    const corrects = 'its transaction id tx-1 was given by an operator. If that id is wrong: outboxd resolve outbox:1'

    test.each([
      answers('1,not-arrived\n'),
      'outbox_id,arrived_as,attempts,transaction_id\n1,not-arrived,1,\n',
    ])('that it arrived, and the file says that it did not: %j', async (text) => {
      await fixture.end(uncertain, { outboxId: '1' })
      expect((await run(answers('1,tx-1\n'), { yes: true, unchecked: true })).code).toBe(0)
      const { code, messages } = await run(text, { yes: true })
      expect(code).toBe(1)
      expect(messages).toContain(`outbox:1 is accepted; ${corrects} --not-arrived`)
      expect(await states()).toEqual(['1 accepted tx-1'])
    })

    test('that it arrived under a corrected id, and the same file is given again', async () => {
      await fixture.end(uncertain, { outboxId: '1' })
      const word = { yes: true, unchecked: true }
      expect((await run(answers('1,tx-9\n'), word)).code).toBe(0)
      expect(await resolve.action(fixture.context(), 'outbox:1', { arrived: 'tx-1', ...word })).toBe(0)
      expect((await run(answers('1,tx-9\n'), word)).messages).toContain(`${corrects} --arrived tx-9`)
      expect(await states()).toEqual(['1 accepted tx-1'])
    })

    test('that it did not arrive as that transaction', async () => {
      await fixture.end(uncertain, { outboxId: '1' })
      const word = { yes: true, unchecked: true }
      await run(answers('1,tx-9\n'), word)
      expect(await resolve.action(fixture.context(), 'outbox:1', { takeBack: true, yes: true })).toBe(0)
      expect((await run(answers('1,tx-9\n'), word)).messages).toContain(
        'outbox:1 did not arrive as tx-9, an operator has said. If it did after all: outboxd resolve outbox:1 --arrived tx-9',
      )
      expect(await states()).toEqual(['1 uncertain'])
    })
  })

  test('a file that contains the operator’s earlier transaction ids may correct them', async () => {
    for (const outboxId of ['1', '2', '3']) await fixture.end(uncertain, { outboxId })
    const word = { yes: true, unchecked: true }
    expect((await run(answers('1,tx-1\n2,tx-2\n3,tx-3\n'), word)).code).toBe(0)
    const listed = fixture.context()
    await list.action(listed, { state: 'accepted', csv: true })
    const filled = listed
      .printed()
      .replace(/^1,,/m, '1,not-arrived,')
      .replace(/^2,,/m, '2,tx-22,')
      .replace(/^3,,/m, '3,tx-3,')
    const { code, messages } = await run(filled, word)
    expect(messages).toContain('outbox:3 is already accepted as tx-3')
    expect(code).toBe(1)
    expect(await states()).toEqual(['1 queued', '2 accepted tx-22', '3 accepted tx-3'])
    expect((await run(filled, word)).messages).toContain('outbox:2 is already accepted as tx-22')
    expect(await states()).toEqual(['1 queued', '2 accepted tx-22', '3 accepted tx-3'])
  })

  test('a file without answers exits with 3', async () => {
    await fixture.end(uncertain, { outboxId: '1' })
    expect((await run(answers('1,\n'), { yes: true })).code).toBe(3)
  })

  test('--file with --not-arrived, neither of record and file, or a missing file exits with 2', async () => {
    expect((await run(answers('1,tx\n'), { notArrived: true })).code).toBe(2)
    const context = fixture.context()
    expect(await resolve.action(context, undefined, { notArrived: true })).toBe(2)
    expect(await resolve.action(context, undefined, { file: '/nowhere/ask.csv' })).toBe(2)
    expect(context.messages()).toContain('--file /nowhere/ask.csv: ENOENT')
  })
})
