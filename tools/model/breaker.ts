import { Broken, type Index, Model, repeat, set, upTo } from './checker.ts'

/** Requests in a row without an answer that open the breaker: in the daemon five. */
const SILENT = 2
/** Trials in doubt after which a person must act. */
const DOUBTS = 3

interface Request {
  method: 'POST' | 'GET' | 'GET of the last'
  record: Index
  isTrial: boolean
}
const newRecord = {
  state: 'absent' as 'absent' | 'queued' | 'sending' | 'accepted' | 'done' | 'rejected' | 'uncertain',
  isDue: false,
  /** How often it opened the breaker, counted again only if submissions of others got through since. */
  opened: 0,
  othersGotThrough: false,
  pauses: 0,
}
/** What is forgotten when the breaker closes. */
const closed = {
  breaker: 'closed' as 'closed' | 'open' | 'half-open',
  openedBy: null as Index | null,
  /** A submission opened it, and is in doubt; and a GET has worked since, so that the next trial is a submission. */
  isOfSubmission: false,
  isInDoubt: false,
  hasGetWorked: false,
  isTried: false,
  /** The daemon of a trial by a submission was killed. */
  isTrialLost: false,
  /** True after the first, third, … trial that failed: polls may alone be the cause, so another request is next. */
  isPollLast: false,
}
const newState = {
  records: repeat(1, newRecord),
  queue: [] as Index[],
  daemons: repeat(2, { requests: [] as Request[], isDead: false }),
  ...closed,
  trialsInDoubt: 0,
  silent: 0,
  doubts: 0,
  isDown: false,
  changes: 0,
  faults: 0,
}
type State = typeof newState

/** The breaker. Time is counted in pauses. */
export class Breaker extends Model<State> {
  readonly records = upTo(this.size.records)

  begin(): State {
    const { faults, changes } = this.size
    const records = repeat(this.size.records, newRecord)
    for (const r of this.records)
      if (this.is(`record ${r} is accepted`)) set(records[r], { state: 'accepted', isDue: true })
    return { ...newState, records, faults, changes, isDown: this.is('POST is down') }
  }

  steps(state: State): void {
    const { records, queue, breaker, openedBy, isTried, daemons, changes, isDown } = state
    const absent = this.records.find((r) => records[r].state === 'absent')
    if (absent !== undefined) {
      const next = this.step(`record ${absent} comes`)
      this.enqueue(next, absent)
      next.records[absent].pauses = breaker === 'open' ? 1 : 0
    }
    const underWay = daemons.flatMap(({ requests }) => requests.map(({ record }) => record))
    for (const r of this.records)
      if (records[r].state === 'accepted' && !underWay.includes(r))
        this.step(`the poll of record ${r} is due`).records[r].isDue = true
    if (breaker === 'open' && !this.waitsForPerson(state)) {
      const next = this.step('the pause ends: half-open')
      next.breaker = 'half-open'
      for (const record of next.records) record.isDue ||= record.state === 'accepted'
      if (openedBy !== null && queue.includes(openedBy) && !this.is('what opened it goes behind at once'))
        this.enqueue(next, openedBy)
    }
    const hasTrial = daemons.some(({ requests }) => requests.some(({ isTrial }) => isTrial))
    if (isTried && !hasTrial && !this.is('a trial has no deadline')) {
      const next = this.step('the deadline of the trial is over')
      const isPollLast = !next.isPollLast
      const opens = { breaker: 'open', isOfSubmission: true, isInDoubt: true, hasGetWorked: false, isPollLast } as const
      if (next.isTrialLost && !this.is('a lost trial is no doubt')) set(next, { ...opens, doubts: next.doubts + 1 })
      set(next, { isTried: false, isTrialLost: false })
    }
    if (changes > 0) {
      const next = isDown ? this.step('the service is up') : this.chance('the service is down')
      set(next, { isDown: !isDown, changes: changes - 1 })
    }
    for (const d of [0, 1] as const) this.daemon(state, d)
  }

  daemon(state: State, d: Index): void {
    const { isDead, requests } = state.daemons[d]
    if (isDead) this.step(`daemon ${d} starts`).daemons[d].isDead = false
    if (!isDead && requests.length < this.size.inFlight) this.claim(state, d)
    for (const [k, request] of requests.entries()) {
      const next = this.step(`daemon ${d}: ${request.method} of record ${request.record} ends`)
      next.daemons[d].requests.splice(k, 1)
      this.answer(next, request)
    }
    if (isDead || state.faults === 0) return
    const next = this.fault(`kill daemon ${d}`)
    set(next.daemons[d], { requests: [], isDead: true })
    for (const { method, record, isTrial } of requests) {
      next.isTrialLost ||= method === 'POST' && isTrial
      if (method === 'POST') this.leaveInDoubt(next, record, isTrial)
      else next.records[record].isDue = method === 'GET'
    }
  }

  /** Closed, it lets all through; half-open one trial, if possible of a record that did not open it. */
  claim(state: State, d: Index): void {
    const { records, queue, breaker, openedBy, isTried, hasGetWorked, isOfSubmission, isInDoubt } = state
    const isPollLast = state.isPollLast && !this.is('polls are always tried first')
    const isTrial = breaker === 'half-open'
    const take = (method: Request['method'], record: Index | undefined, isTrial = breaker === 'half-open') => {
      if (record === undefined) return
      const next = this.step(`daemon ${d}: ${method} of record ${record}${isTrial ? ' as a trial' : ''}`)
      next.daemons[d].requests.push({ method, record, isTrial })
      next.isTried ||= isTrial
      if (method === 'POST') this.leave(next, record, 'sending')
      if (method === 'GET') next.records[record].isDue = false
    }
    const due = this.records.filter((r) => records[r].isDue)
    if (breaker === 'closed') {
      take('POST', queue[0])
      for (const r of due) take('GET', r)
    }
    if (isTrial && hasGetWorked) for (const r of due) take('GET', r, false)
    if (!isTrial || isTried) return
    const isOther = (r: Index) => r !== openedBy || this.is('what opened it is tried first')
    const other = queue.find(isOther)
    const poll = due.find((r) => isOther(r) || other === undefined)
    const last = this.records.find((r) => records[r].state === 'accepted' || records[r].state === 'done')
    const asksFirst = (isOfSubmission && (isInDoubt || other === undefined)) || queue.length === 0
    if (poll !== undefined && !hasGetWorked && !(isPollLast && (other !== undefined || asksFirst))) take('GET', poll)
    else if (last !== undefined && !hasGetWorked && asksFirst) take('GET of the last', last)
    else take('POST', other ?? queue[0])
  }

  answer(next: State, request: Request): void {
    const { method, record: r, isTrial } = request
    const isDown = next.isDown && (method === 'POST' || !this.is('GET works'))
    const isSilent = isDown && this.is('down is silence')
    const isUnknown = method === 'GET of the last' && this.is('the last is unknown and counts as down')
    const isRefused = isDown || isUnknown || (method !== 'GET of the last' && this.isBad(r, method))
    if (method === 'POST' && isSilent) {
      this.leaveInDoubt(next, r, isTrial)
      if (isTrial) next.doubts++
    } else if (method === 'POST' && isRefused) this.enqueue(next, r)
    else if (method === 'POST' || (method === 'GET' && !isRefused && !this.is('the poll is pending')))
      next.records[r].state = 'done'
    if (isRefused) this.fail(next, request, isSilent)
    else this.work(next, request)
    const inDoubt = next.records.filter(({ state }) => state === 'uncertain').length - this.size.faults
    if (inDoubt > SILENT + 2 * this.size.inFlight - 1 + DOUBTS && !this.waitsForPerson(next))
      throw new Broken('too many are in doubt')
  }

  work(next: State, { method, record: r, isTrial }: Request): void {
    next.silent = 0
    if (method === 'POST' || this.is('polls count as submissions'))
      for (const q of this.records) next.records[q].othersGotThrough ||= q !== r && next.records[q].opened > 0
    if (!isTrial) return
    const isProof = method === 'POST' || !next.isOfSubmission || this.is('a GET proves enough')
    set(next, isProof ? closed : { hasGetWorked: true, isTried: false })
  }

  fail(next: State, { method, record: r, isTrial }: Request, isSilent: boolean): void {
    const isHeard = isTrial || next.breaker === 'closed' || (next.hasGetWorked && method === 'GET' && !next.isTried)
    if (!isHeard || (!isTrial && isSilent && ++next.silent < SILENT)) return
    const isOfSubmission = next.isOfSubmission || method !== 'GET'
    set(next, {
      breaker: 'open',
      openedBy: method === 'GET of the last' ? null : r,
      isOfSubmission,
      isInDoubt: (next.isInDoubt && !this.is('a doubt is forgotten')) || (isSilent && method === 'POST'),
      hasGetWorked: false,
      isTried: false,
      isPollLast: isTrial && !next.isPollLast,
      silent: 0,
    })
    for (const q of new Set([...next.queue, r])) {
      if (next.queue.every((other) => other === q)) continue
      const { pauses } = set(next.records[q], { pauses: Math.min(next.records[q].pauses + 1, 9) })
      const most = q === 0 || this.isBad(0, 'GET') ? 3 : 1
      if (this.is('one record is bad') && pauses > most) throw new Broken(`record ${q} waits through ${pauses} pauses`)
    }
    if (this.is('nothing ever works') && next.doubts > 1)
      throw new Broken('a second record is left in doubt, although a GET would show that the service is down')
    const record = next.records[r]
    if (record.state === 'uncertain' || method === 'GET of the last') return
    if (record.opened === 0 || record.othersGotThrough)
      set(record, { opened: record.opened + 1, othersGotThrough: false })
    if (record.opened < 3 || this.is('a bad record is tried for ever')) return
    if (!this.isBad(r, method)) throw new Broken(`record ${r} is good, and is given up`)
    this.leave(next, r, method === 'POST' ? 'rejected' : 'uncertain')
  }

  leaveInDoubt(next: State, r: Index, isTrial: boolean): void {
    next.records[r].state = 'uncertain'
    if (isTrial && ++next.trialsInDoubt > DOUBTS) throw new Broken('too many trials are in doubt')
  }

  isBad(r: Index, method: Request['method']): boolean {
    return this.is(`${method} of record ${r} always fails`)
  }

  waitsForPerson({ doubts }: State): boolean {
    return doubts >= DOUBTS && !this.is('doubts are not counted')
  }

  /** Puts the record behind all that wait. */
  enqueue(next: State, r: Index): void {
    this.leave(next, r, 'queued')
    if (this.is('what opened it keeps its place')) next.queue.unshift(r)
    else next.queue.push(r)
  }

  leave(next: State, r: Index, state: State['records'][0]['state']): void {
    next.records[r].state = state
    next.queue = next.queue.filter((q) => q !== r)
  }

  isEnd(state: State): boolean {
    if (this.is('nothing ever works')) return state.breaker === 'open'
    const isOver = (r: Index) => ['done', 'rejected', 'uncertain'].includes(state.records[r].state)
    const isBad = (r: Index) =>
      this.isBad(r, 'POST') || this.isBad(r, 'GET') || (this.is('the poll is pending') && r === 0)
    return this.waitsForPerson(state) || this.records.every((r) => isOver(r) || isBad(r))
  }
}
