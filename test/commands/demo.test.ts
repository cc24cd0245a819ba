import { existsSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { command as demo } from '../../src/commands/demo.ts'
import { checkRecords, formatRecordCheck, type LoggedRequest, type WrittenRecord } from '../../src/demo/checkRecords.ts'
import { createSalesOrder, type OutboxRow, type RecordKind } from '../../src/demo/erp.ts'
import { expectedMinutesMessage, formatOutcome, isAllCorrect } from '../../src/demo/runOrders.ts'
import { testContext } from '../support/context.ts'
import { startProgram } from '../support/program.ts'

const longMs = 120_000

interface Tamperable {
  written: WrittenRecord[]
  arrivals: LoggedRequest[]
  outbox: OutboxRow[]
}

/** Evidence of a right run: a data record, an order, an unknown customer, an amount with three decimals. */
function evidence(): Tamperable {
  const written = (reference: string, kind: RecordKind, amount: string) => ({ reference, kind, amount })
  return {
    written: [
      written('SO-1', 'data', '99999999.99'),
      written('SO-2', 'order', '12.50'),
      written('SO-3', 'unknown-customer', '0.01'),
      written('SO-4', 'three-decimals', '19.995'),
    ],
    arrivals: [
      arrival({ body: dataBody('SO-1', '99999999.99'), transactionId: 't-1' }),
      arrival({
        endpoint: 'order',
        body: '{"customerId":"c","items":[{"price":12.5,"orderNumber":"SO-2"}]}',
        status: 201,
        orderId: 'o-2',
      }),
      arrival({ body: dataBody('SO-3', '0.01'), status: 400 }),
    ],
    outbox: [
      row({ reference: 'SO-1', status: 'completed', transactionId: 't-1' }),
      row({ reference: 'SO-2', status: 'completed', transactionId: 'o-2' }),
      row({ reference: 'SO-3', status: 'rejected', errorCode: 'E001', error: 'Invalid customer' }),
      row({ reference: 'SO-4', status: 'rejected', error: 'amount: has 3 decimals' }),
    ],
  }
}

function dataBody(reference: string, amount: string): string {
  return `{"customerId":"C-1","data":{"field1":"value1","field2":"${reference}","total_amount":${amount}}}`
}

function arrival(given: Partial<LoggedRequest>): LoggedRequest {
  return { endpoint: 'submit', body: null, status: 200, transactionId: null, orderId: null, ...given }
}

function row(given: Partial<OutboxRow>): OutboxRow {
  return { reference: null, status: 'new', transactionId: null, errorCode: null, error: null, ...given }
}

describe('the check of totals', () => {
  test('finds no problem in a right run', () => {
    const { kinds, problems } = checkRecords(evidence())
    expect(problems).toEqual([])
    expect(kinds.map(({ kind, written, right }) => [kind, written, right])).toEqual([
      ['data', 1, 1],
      ['order', 1, 1],
      ['unknown-customer', 1, 1],
      ['three-decimals', 1, 1],
    ])
  })

  test('ignores requests that got 429', () => {
    const good = evidence()
    good.arrivals.unshift(arrival({ body: dataBody('SO-1', '99999999.99'), status: 429 }))
    expect(checkRecords(good).problems).toEqual([])
  })

  type Tampering = [what: string, tamper: (evidence: Tamperable) => void, says: RegExp]
  const tamperings: Tampering[] = [
    [
      'an amount is off by a cent that a double cannot represent',
      ({ written, arrivals }) => {
        written[0] = { reference: 'SO-1', kind: 'data', amount: '900719925474099.91' }
        arrivals[0] = arrival({ body: dataBody('SO-1', '900719925474099.92'), transactionId: 't-1' })
      },
      /SO-1 .*amount 900719925474099.91, but is .*amount 900719925474099.92/,
    ],
    [
      'the amount of an order is off by a cent',
      ({ arrivals }) => {
        if (arrivals[1]) arrivals[1].body = '{"customerId":"c","items":[{"price":12.51,"orderNumber":"SO-2"}]}'
      },
      /SO-2 .*12\.51/,
    ],
    [
      'an amount was rounded to a third decimal',
      ({ arrivals }) => {
        if (arrivals[0]) arrivals[0].body = dataBody('SO-1', '99999999.990')
      },
      /SO-1 .*99999999\.990/,
    ],
    [
      'a record was kept twice',
      ({ arrivals }) => void arrivals.push(arrival({ body: dataBody('SO-1', '99999999.99'), transactionId: 't-9' })),
      /SO-1 .*but is completed, sent twice, kept by the service twice/,
    ],
    [
      'a record was sent twice, though the service refused the second',
      ({ arrivals }) => void arrivals.push(arrival({ body: dataBody('SO-1', '99999999.99'), status: 409 })),
      /SO-1 .*but is completed, sent twice, kept by the service once/,
    ],
    [
      'a record is missing at the service',
      ({ arrivals }) => void arrivals.shift(),
      /SO-1 .*but is completed, never sent, never kept/,
    ],
    ['a record is missing in the outbox', ({ outbox }) => void outbox.shift(), /SO-1 .*but is not in the outbox/],
    [
      'a record is in the outbox twice',
      ({ outbox }) => void outbox.push(row({ reference: 'SO-1', status: 'completed', transactionId: 't-1' })),
      /SO-1 .*but is completed and completed/,
    ],
    [
      'a record ended in a different state',
      ({ outbox }) => {
        if (outbox[0]) outbox[0].status = 'uncertain'
      },
      /SO-1 should be completed, .*but is uncertain/,
    ],
    [
      'a record did not end',
      ({ outbox }) => {
        if (outbox[1]) outbox[1].status = 'accepted'
      },
      /SO-2 .*but is accepted/,
    ],
    [
      'the outbox names a different transaction',
      ({ outbox }) => {
        if (outbox[0]) outbox[0].transactionId = 't-7'
      },
      /SO-1 .*; the outbox names another transaction/,
    ],
    [
      'a rejected record lacks its code',
      ({ outbox }) => {
        if (outbox[2]) outbox[2].errorCode = null
      },
      /SO-3 should be rejected \(E001\), .*but is rejected, /,
    ],
    [
      'three decimals were sent after all',
      ({ arrivals }) => void arrivals.push(arrival({ body: dataBody('SO-4', '20.00'), transactionId: 't-4' })),
      /SO-4 .*never sent, .*but is rejected, sent once, kept by the service once/,
    ],
    [
      'a rejected record does not say why',
      ({ outbox }) => {
        if (outbox[3]) outbox[3].error = null
      },
      /SO-4 .*but is rejected without a reason/,
    ],
    [
      'the service has a record that the ERP never wrote',
      ({ arrivals }) => void arrivals.push(arrival({ body: '{"data":', transactionId: 't-5' })),
      /a request without a readable reference arrived, but the ERP never wrote it/,
    ],
  ]

  test.each(tamperings)('reports that %s', (_, tamper, says) => {
    const tampered = evidence()
    tamper(tampered)
    const check = checkRecords(tampered)
    expect(check.problems).toContainEqual(expect.stringMatching(says))
    const service = { requests: 5, mostInAMinute: 5 }
    expect(isAllCorrect({ check, service })).toBe(false)
    expect(formatOutcome({ check, service, tookMs: 1000 })).toContain('NOT as it should be')
  })

  test('fails if one minute had more than 100 requests', () => {
    const check = checkRecords(evidence())
    expect(isAllCorrect({ check, service: { requests: 150, mostInAMinute: 100 } })).toBe(true)
    expect(isAllCorrect({ check, service: { requests: 150, mostInAMinute: 101 } })).toBe(false)
  })

  test('prints a line for each kind of record', () => {
    expect(formatRecordCheck(checkRecords(evidence()))).toMatch(
      /1 of 1 +unknown customer +rejected \(E001\), sent once, never kept by the service, its amount equal to the cent/,
    )
  })
})

test('demo says in advance how long a run of more than a minute takes', () => {
  expect(expectedMinutesMessage(40)).toBe('')
  expect(expectedMinutesMessage(200)).toContain('this takes about 3 min')
})

test('the smallest and the largest amounts are in records that are sent', () => {
  const right = Array.from({ length: 12 }, (_, index) => createSalesOrder(index)).filter(
    ({ kind }) => kind === 'data' || kind === 'order',
  )
  expect(right.map(({ amount }) => amount)).toEqual(
    expect.arrayContaining(['0.01', '12.5', '1234567.89', '99999999.99']),
  )
})

test.concurrent('demo sends twelve records, and all of them end right', { timeout: longMs }, async () => {
  const context = {
    ...testContext({}),
    env: process.env,
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    signal: AbortSignal.any([]),
  }
  const code = await demo.action(context, { records: 12 })
  context.stdout.end()
  context.stderr.end()
  const out = await text(context.stdout)
  const message = await text(context.stderr)
  expect(out).toMatch(
    /7 of 7 +data records +completed, sent once, kept by the service once, its amount equal to the cent/,
  )
  expect(out).toMatch(/1 of 1 +three decimals +rejected, never sent, never kept by the service/)
  expect(out).toContain('All 12 records ended after')
  expect(message).toMatch(/outboxd status --watch\n {2}\d+ of 12 have ended \| 20.* requests free\n/)
  expect(code).toBe(0)
})

/** Starts the demo as a process, and waits until it stays up. */
async function keptDemo(env: Record<string, string> = {}) {
  const program = startProgram({ args: ['demo', '--records', '4', '--keep'], env })
  await program.line((line) => line.includes('Try next'))
  const out = program.lastLines()
  const found = (pattern: RegExp) => pattern.exec(out)?.[1] ?? `nothing like ${pattern}`
  return {
    program,
    out,
    folder: dirname(found(/the logs +(\S+),/)),
    sandboxUrl: found(/the sandbox +(http:\/\/[^/]+)/),
    daemonUrl: found(/the daemon +(http:\/\/[^/]+)/),
    consoleUrl: found(/the console +(http:\/\/\S+)/),
  }
}

/** Resolves when the folder is removed, which is the demo's last step. */
async function removed(folder: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const watcher = watch(dirname(folder), () => existsSync(folder) || resolve())
  if (!existsSync(folder)) resolve()
  await promise
  watcher.close()
}

const isUp = (url: string) =>
  fetch(url).then(
    () => true,
    () => false,
  )

test.concurrent('with --keep, console, daemon and sandbox answer until Ctrl-C, and then nothing is left', {
  timeout: longMs,
}, async () => {
  const { program, out, folder, sandboxUrl, daemonUrl, consoleUrl } = await keptDemo({
    DATABASE_URL: 'postgres://not-mine/x',
  })
  expect(out).not.toContain('not-mine')
  expect(await (await fetch(consoleUrl)).text()).toContain('2 records need you')
  expect(await isUp(`${daemonUrl}/metrics`)).toBe(true)
  expect(await isUp(`${sandboxUrl}/_sandbox/ledger`)).toBe(true)
  program.signal('SIGINT')
  expect((await program.ended()).code).toBe(0)
  expect(await isUp(consoleUrl)).toBe(false)
  expect(await isUp(`${daemonUrl}/metrics`)).toBe(false)
  expect(await isUp(`${sandboxUrl}/_sandbox/ledger`)).toBe(false)
  expect(existsSync(folder)).toBe(false)
})

test.concurrent('after kill -9 of the demo, its processes and its folder are gone too', {
  timeout: longMs,
}, async () => {
  const { program, folder, sandboxUrl, daemonUrl, consoleUrl } = await keptDemo()
  program.signal('SIGKILL')
  await program.ended()
  await removed(folder)
  expect(await isUp(consoleUrl)).toBe(false)
  expect(await isUp(`${daemonUrl}/metrics`)).toBe(false)
  expect(await isUp(`${sandboxUrl}/_sandbox/ledger`)).toBe(false)
})
