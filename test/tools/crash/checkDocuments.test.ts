import { expect, test } from 'vitest'
import { findDocumentViolations } from '../../../tools/crash/checkDocuments.ts'
import type {
  Arrival,
  DocumentRow,
  DocumentVersion,
  EventRow,
  History,
  LedgerRow,
} from '../../../tools/crash/history.ts'

/** A sale of three versions: the first was sent, the second is unchanged, the third was sent. */
const versions: DocumentVersion[] = [version('m1.', '1.10'), version('m1.', '1.10'), version('m2.', '2.20')]
const rows = [
  row(1, 'completed', 'o1'),
  row(2, 'discarded', null, 'unchanged since outbox:1'),
  row(3, 'completed', 'o2'),
]
const arrivals = [arrival(1, 'm1.', '1.10', 'o1'), arrival(2, 'm2.', '2.20', 'o2')]

test.each<[string, Parameters<typeof evidence>[0]]>([
  ['all is well', {}],
  [
    'a version that was overtaken before it was read',
    {
      arrivals: [arrivals[1] as Arrival],
      rows: [
        row(1, 'completed', 'o2'),
        row(2, 'discarded', null, 'unchanged since outbox:1'),
        row(3, 'discarded', null, 'unchanged since outbox:1'),
      ],
    },
  ],
  [
    'the last version in doubt',
    { arrivals: [arrivals[0] as Arrival], rows: [...rows.slice(0, 2), row(3, 'uncertain', null)] },
  ],
  [
    'the last version given up by an operator',
    { arrivals: [arrivals[0] as Arrival], rows: [...rows.slice(0, 2), row(3, 'discarded', null, 'crash campaign')] },
  ],
  [
    'a document that was deleted',
    {
      versions: [...versions.slice(0, 2), { ...version('', ''), marker: null, total: null, isSent: false }],
      arrivals: [arrivals[0] as Arrival],
      rows: [...rows.slice(0, 2), row(3, 'discarded', null, 'sale 1 was deleted')],
    },
  ],
])('%s', (_, change) => {
  expect(findDocumentViolations(evidence(change)).map(({ what }) => what)).toEqual([])
})

test.each<[string, Parameters<typeof evidence>[0]]>([
  [
    'its last version m2. did not arrive',
    { arrivals: [arrivals[0] as Arrival], rows: [...rows.slice(0, 2), row(3, 'completed', null)] },
  ],
  [
    'row 3 of version 3 ended as unchanged since m1., which is older',
    { rows: [...rows.slice(0, 2), row(3, 'discarded', null, 'unchanged since outbox:1')] },
  ],
  ['m2.: sent twice: o2 and o3', { arrivals: [...arrivals, arrival(3, 'm2.', '2.20', 'o3')] }],
  ['m2.: 2.20 arrived as 2.2', { arrivals: [arrivals[0] as Arrival, arrival(2, 'm2.', '2.2', 'o2')] }],
  ['m1. arrived after m2., which is newer', { arrivals: [arrival(3, 'm1.', '1.10', 'o1'), arrivals[1] as Arrival] }],
  [
    'row 3 of version 3 sent m1., which is older',
    { rows: [row(1, 'completed', 'o2'), rows[1] as DocumentRow, row(3, 'completed', 'o1')] },
  ],
  [
    'm2. was sent although it does not meet the condition',
    { versions: [...versions.slice(0, 2), { ...version('m2.', '2.20'), isSent: false }] },
  ],
  ['3 transactions wrote it, and 2 rows name it', { rows: rows.slice(0, 2) }],
  ['row 3: it has not come to an end: sending', { rows: [...rows.slice(0, 2), row(3, 'sending', 'o2')] }],
  [
    'row 3: the outbox row has no submission: it was lost',
    { ledger: [1, 2].map((id) => ledgerRow(rows[id - 1] as DocumentRow)) },
  ],
])('reports: %s', (what, change) => {
  expect(findDocumentViolations(evidence(change)).map((each) => each.what)).toContain(`sale 1: ${what}`)
})

function version(marker: string, total: string): DocumentVersion {
  return { document: '1', marker, total, isSent: true }
}

function row(id: number, status: string, transactionId: string | null, error: string | null = null): DocumentRow {
  return {
    outboxId: String(id),
    document: '1',
    marker: '',
    key: '1',
    status,
    transactionId,
    errorCode: null,
    error,
    toldUs: null,
  }
}

function arrival(at: number, marker: string, amount: string, effectId: string): Arrival {
  return {
    sequence: at,
    marker,
    amount,
    arrivedUs: at,
    idempotencyKey: `k${at}`,
    status: 201,
    faultId: null,
    effectId,
    errorCode: null,
    doneUs: null,
  }
}

function ledgerRow({ outboxId, status, transactionId }: DocumentRow): LedgerRow {
  return {
    ...{
      isPruned: false,
      id: outboxId,
      outboxId,
      state: status,
      attempt: 0,
      resubmissions: 0,
      renewedKeys: 0,
      seq: Number(outboxId),
    },
    ...{ transactionId, errorCode: null, error: null, reportDue: false },
  }
}

function evidence({
  ledger,
  ...change
}: Partial<Pick<History, 'arrivals' | 'ledger' | 'lost'> & History['documents']>): History {
  const documents = { rows, versions, ...change }
  const submissions = ledger ?? documents.rows.map(ledgerRow)
  const events = submissions.map(
    ({ id, state }): EventRow => ({
      submissionId: id,
      atUs: 0,
      from: null,
      to: state,
      attempt: 0,
      cause: '',
      message: null,
      who: '',
    }),
  )
  return {
    ...{
      written: new Map(),
      outbox: [],
      documents,
      ledger: submissions,
      events,
      arrivals: change.arrivals ?? arrivals,
      requestsMost: 0,
    },
    lost: change.lost ?? [],
    ...{
      unmarked: 0,
      requestsAllowed: 0,
      throttledUnasked: 0,
      requests: 0,
      emptied: 0,
      problems: [],
    },
  }
}
