import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { decideSubmit, type SubmitVerdict } from '../../src/daemon/decideSubmit.ts'
import { decideTrack, type TrackVerdict } from '../../src/daemon/decideTrack.ts'
import type { PauseToRaise } from '../../src/model/service.ts'
import {
  type GetAnswerMeaning,
  type HttpStatusMeaning,
  httpStatusMeanings,
  meaningOfHttpStatus,
  type PostAnswerMeaning,
  type TokenAnswerMeaning,
} from '../../src/model/statuses.ts'
import { type Resource, resourceNames } from '../../src/resources.ts'
import {
  readGetAnswer,
  readPauseFromTokenAnswer,
  readSubmitAnswer,
  requestOutcomeOf,
} from '../../src/service/readAnswer.ts'
import { response } from '../support/answers.ts'

/** What docs/why/states.md says about a meaning, and the verdict that must follow, for an answer without a code. */
interface Said<Kind> {
  /** What becomes of the record. */
  record: string
  /** The pause of all instances, if any. */
  everyone: PauseToRaise['reason'] | null
  kind: Kind
}

const post: Record<PostAnswerMeaning, Said<SubmitVerdict['kind']> & { mayHaveArrived?: true }> = {
  taken: { record: 'accepted with an id, else uncertain', everyone: null, kind: 'uncertain' },
  performed: {
    record: 'GET of the id in Location; without one uncertain',
    everyone: null,
    kind: 'uncertain',
  },
  moved: {
    record: 'sent once more after the pause, even if it arrived; redirected again: uncertain (`resend`: sent again)',
    everyone: 'unauthorized',
    kind: 'pause',
    mayHaveArrived: true,
  },
  invalid: { record: 'rejected', everyone: null, kind: 'rejected' },
  'token-refused': {
    record: 'sent once more with a new token; if refused again, queued',
    everyone: 'unauthorized',
    kind: 'new-token',
  },
  forbidden: { record: 'queued', everyone: 'unauthorized', kind: 'pause' },
  'nothing-there': {
    record: 'rejected if the answer has a code E000 to E999, else queued',
    everyone: 'unreachable',
    kind: 'pause',
  },
  'refused-in-doubt': {
    record: 'rejected, may have arrived',
    everyone: null,
    kind: 'rejected',
    mayHaveArrived: true,
  },
  refused: { record: 'rejected', everyone: null, kind: 'rejected' },
  throttled: { record: 'queued', everyone: 'throttled', kind: 'pause' },
  'server-error': {
    record: 'sent again three times, then failed, may have arrived (`SERVER_ERRORS=hold`: uncertain)',
    everyone: null,
    kind: 'retry',
  },
  unavailable: { record: 'queued', everyone: 'unavailable', kind: 'pause' },
  'in-doubt': { record: 'in doubt: `UNCERTAIN_POLICY`', everyone: null, kind: 'uncertain' },
}

const get: Record<GetAnswerMeaning, Said<TrackVerdict['kind']>> = {
  answered: {
    record: 'the transaction’s status decides; asked again if unreadable',
    everyone: null,
    kind: 'ask-again',
  },
  moved: { record: 'asked again', everyone: 'unauthorized', kind: 'pause' },
  'token-refused': { record: 'asked again with a new token', everyone: 'unauthorized', kind: 'new-token' },
  forbidden: { record: 'asked again', everyone: 'unauthorized', kind: 'pause' },
  unknown: {
    record: 'asked for ten minutes, then failed, may have arrived',
    everyone: null,
    kind: 'ask-again',
  },
  throttled: { record: 'asked again', everyone: 'throttled', kind: 'pause' },
  unavailable: { record: 'asked again', everyone: 'unavailable', kind: 'pause' },
  'ask-again': { record: 'asked more rarely', everyone: null, kind: 'ask-again' },
}

const token: Record<TokenAnswerMeaning, PauseToRaise['reason']> = {
  answered: 'unreachable',
  moved: 'unauthorized',
  'wrong-address': 'unauthorized',
  refused: 'unauthorized',
  throttled: 'throttled',
  unavailable: 'unavailable',
  unreachable: 'unreachable',
}

test('docs/why/states.md shows the table (npm test -- test/model/statuses -u writes it)', async () => {
  const path = join(import.meta.dirname, '../../docs/why/states.md')
  const [before = '', after = ''] = readFileSync(path, 'utf8').split(
    /(?<=<!-- statuses: generated -->\n).*(?=<!-- end -->)/s,
  )
  expect(after).not.toBe('')
  await expect(`${before}\n${table()}\n\n${after}`).toMatchFileSnapshot('../../docs/why/states.md')
})

function table(): string {
  const rows = Map.groupBy(httpStatusMeanings, (row) =>
    [
      post[row.post].record,
      get[row.get].record,
      everyone(post[row.post].everyone, get[row.get].everyone),
      row.token === 'answered' ? `${token.answered}, if it has no token` : token[row.token],
    ].join(' | '),
  )
  const lines = [...rows]
    .map(([cells, same]) => `| ${inOrder(same)} | ${cells} |`)
    .toSorted((one, other) => firstNumber(one) - firstNumber(other))
  const head = [
    'status',
    'POST: the record',
    'GET: the record',
    'pause of all instances (its reason)',
    'pause if a token request gets it',
  ]
  return [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...lines].join('\n')
}

const inOrder = (rows: readonly HttpStatusMeaning[]) =>
  rows
    .flatMap(({ statuses }) => statuses.split(', '))
    .toSorted((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10))
    .join(', ')

const firstNumber = (line: string) => Number(/\d+/.exec(line))

function everyone(ofPost: string | null, ofGet: string | null): string {
  if (ofPost === ofGet) return ofPost ?? ''
  return ofGet === null ? `${ofPost} (if the record is queued)` : `${ofGet} (if a GET gets it)`
}

test('each status from 100 to 599 is in one row', () => {
  const ranges = httpStatusMeanings.flatMap(({ statuses }) =>
    statuses.split(', ').map((range) => range.split('-').map(Number)),
  )
  const all = ranges.flatMap(([first = 0, last = first]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i),
  )
  expect(all.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, i) => 100 + i))
})

/** Every status, and numbers that are no HTTP status. */
const every = Array.from({ length: 700 }, (_, i) => 50 + i)

describe.each(resourceNames)('an answer about %s without a code', (resource) => {
  test('to a POST has the verdict of its row, whatever the status', () => {
    for (const status of every) {
      const { kind, everyone, mayHaveArrived } = post[meaningOfHttpStatus(status).post]
      const verdict = submit(status, resource)
      expect(verdict.kind, String(status)).toBe(kind)
      expect(pauseOf(submit(status, resource, { repeatedAfter401: true })), String(status)).toBe(everyone)
      expect('mayHaveArrived' in verdict ? verdict.mayHaveArrived : false, String(status)).toBe(
        kind === 'pause' && mayHaveArrived === true,
      )
      expect('leftTrace' in verdict && verdict.leftTrace, String(status)).toBe(
        kind === 'rejected' && mayHaveArrived === true,
      )
    }
  })

  test('to a GET has the verdict of its row, whatever the status', () => {
    for (const status of every) {
      const { kind, everyone } = get[meaningOfHttpStatus(status).get]
      expect(track(status, resource).kind, String(status)).toBe(kind)
      expect(pauseOf(track(status, resource, { repeatedAfter401: true })), String(status)).toBe(everyone)
    }
  })
})

test('an answer to a token request leads to the pause of its row, whatever the status', () => {
  for (const status of every)
    expect(readPauseFromTokenAnswer(response(status)).reason, String(status)).toBe(
      token[meaningOfHttpStatus(status).token],
    )
})

describe.each(['E001', 'E002', 'E003', 'E042', 'invalid_token'])('with the code %s', (code) => {
  const about = [401, 403, 407, 429, 503]

  test('401 and 407 lead to the same pause as without the code, and fail no record', () => {
    for (const status of [401, 407]) {
      const now = { repeatedAfter401: true }
      expect(pauseOf(submit(status, 'data', now, code))).toBe('unauthorized')
      expect(pauseOf(track(status, 'data', now, code))).toBe('unauthorized')
      expect(readPauseFromTokenAnswer(response(status, { code })).reason).toBe('unauthorized')
      expect(requestOutcomeOf(response(status, { code }))).toBe('unauthorized')
    }
  })

  test('a status about all records leads to its pause, unless E002 or E003 decides', () => {
    for (const status of about.filter((each) => meaningOfHttpStatus(each).heedsCode)) {
      const meaning = meaningOfHttpStatus(status)
      const usual = { post: post[meaning.post].everyone, get: get[meaning.get].everyone }
      const now = { repeatedAfter401: true }
      expect(pauseOf(track(status, 'data', now, code))).toBe(code === 'E003' ? 'unavailable' : usual.get)
      expect(readPauseFromTokenAnswer(response(status, { code })).reason).toBe(
        code === 'E003' ? 'unavailable' : token[meaning.token],
      )
      const verdict = submit(status, 'data', now, code)
      if (code === 'E002') expect(verdict.kind).toBe('renew-key')
      else expect(pauseOf(verdict)).toBe(code === 'E003' ? 'unavailable' : usual.post)
    }
  })

  test('E002 and E003 decide for each status but 401, 407, a success and a redirect', () => {
    for (const status of every) {
      const { heedsCode, post, token } = meaningOfHttpStatus(status)
      if (heedsCode && code === 'E002') expect(submit(status, 'data', {}, code).kind, String(status)).toBe('renew-key')
      if (heedsCode && code === 'E003') {
        expect(pauseOf(submit(status, 'data', {}, code)), String(status)).toBe('unavailable')
        expect(pauseOf(track(status, 'data', {}, code)), String(status)).toBe('unavailable')
        if (token !== 'answered')
          expect(readPauseFromTokenAnswer(response(status, { code })).reason).toBe('unavailable')
      }
      if (!heedsCode) expect([401, 407].includes(status) || post === 'performed' || post === 'moved').toBe(true)
    }
  })
})

function submit(status: number, resource: Resource, more: { repeatedAfter401?: boolean } = {}, code?: string) {
  const answer = response(status, code === undefined ? '' : { code })
  return decideSubmit(answer, readSubmitAnswer(answer, resource), {
    history: {
      serverErrors: 0,
      renewedKeys: 0,
      resubmissions: 0,
      inDoubt: false,
      repeatedAfter401: false,
      answeredUnavailable: false,
      ...more,
    },
    policy: 'hold',
    serverErrorPolicy: 'retry',
    tracked: true,
    attempt: 1,
    hasTokenExpired: false,
  })
}

function track(status: number, resource: Resource, more: { repeatedAfter401?: boolean } = {}, code?: string) {
  const answer = response(status, code === undefined ? '' : { code })
  return decideTrack(answer, readGetAnswer(answer, resource), {
    transactionId: 'tx',
    ageMs: 0,
    history: {
      unknownForMs: null,
      resubmissions: 0,
      fruitless: 0,
      repeatedAfter401: false,
      inDoubt: false,
      idByPerson: false,
      answeredUnavailable: false,
      ...more,
    },
    hasTokenExpired: false,
    unavailableMs: 300_000,
  })
}

const pauseOf = (verdict: SubmitVerdict | TrackVerdict) => (verdict.kind === 'pause' ? verdict.pause.reason : null)
