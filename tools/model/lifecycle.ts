import { Broken, type Index, Model, repeat, set, upTo } from './checker.ts'

type End = 'completed' | 'failed' | 'rejected' | 'uncertain' | 'discarded'
type Answer = '200' | '400' | '503' | 'nothing' | 'pending' | 'completed' | 'failed' | 'E003'

/** A row of the outbox, its record in the ledger, and what the service has of it. */
export const newRow = {
  mark: 'waiting' as 'waiting' | 'queued' | End,
  isLocked: false,
  state: 'none' as 'none' | 'queued' | 'sending' | 'accepted' | End,
  claim: 0,
  claimedBy: null as Index | null,
  mayHaveArrived: false,
  isWritten: false,
  isToRefresh: false,
  transaction: 0,
  job: 'none' as 'none' | 'due' | 'fetched' | 'completed',
  transactions: [] as ('pending' | 'completed' | 'failed')[],
  /** How many transactions that did not fail are right. */
  transactionsMost: 1,
  /** Requests on their way, each with the daemon that waits for the answer. */
  wire: [] as (Index | null)[],
}
export type Row = typeof newRow

/** The one request that a daemon works on. */
const idle = {
  at: 'idle' as 'idle' | 'claimed' | 'sent' | 'polls' | 'owes a job' | Answer,
  row: 0 as Index,
  claim: 0,
  transaction: 0,
  isLate: false,
}
export const noCapture = { capture: 'none' as 'none' | 'looked' | 'locked', rows: [] as Index[] }
const newDaemon = { process: 'runs' as 'runs' | 'suspended' | 'dead', isStale: false, ...noCapture, ...idle }
const newState = { rows: repeat(1, newRow), daemons: repeat(2, newDaemon), faults: 0, acts: 0 }
export type State = typeof newState

/** Rows of one key. A step is one committed transaction, or one thing outside of Postgres. */
export class Lifecycle<S extends State = State> extends Model<S> {
  readonly rows = upTo(this.size.rows)
  readonly daemons = upTo(this.size.daemons)

  begin(): S {
    const { rows, daemons, faults, acts } = this.size
    return { rows: repeat(rows, newRow), daemons: repeat(daemons, newDaemon), faults, acts } as S
  }

  steps(state: S): void {
    for (const r of this.rows) {
      this.erp(state, r)
      this.maintenance(state, r)
      this.service(state, r)
      this.operator(state, r)
    }
    for (const d of this.daemons) {
      this.process(state, d)
      if (state.daemons[d].process !== 'runs') continue
      this.request(state, d)
      if (state.daemons[d].isStale) continue
      this.capture(state, d)
      for (const r of this.rows) this.claim(state, d, r)
    }
  }

  erp(state: S, r: Index): void {
    const { mark, isLocked } = state.rows[r]
    if (this.is('the ERP leaves rows alone')) return
    if (isLocked) this.step(`the ERP releases row ${r}`).rows[r].isLocked = false
    if (state.faults > 0 && !hasLock(state, r)) this.fault(`the ERP locks row ${r}`).rows[r].isLocked = true
    if (state.faults === 0 || mark === 'waiting') return
    const row = this.fault(`the ERP sets row ${r} back to waiting`).rows[r]
    if (row.state === 'none') row.transactionsMost++
    row.mark = 'waiting'
  }

  /** Write-back, retention and lost jobs. */
  maintenance(state: S, r: Index): void {
    const { state: is, mark, isWritten, job } = state.rows[r]
    if (isEnd(is) && !isWritten && !hasLock(state, r)) {
      const row = this.step(`write-back: row ${r} says ${is}`).rows[r]
      set(row, { isWritten: true, mark: this.hasMark(is) ? is : mark })
    }
    const isOver = (is === 'completed' || is === 'discarded') && isWritten && !hasLock(state, r)
    if (isOver && this.is('retention') && (mark !== 'waiting' || this.is('the record of a waiting row is deleted'))) {
      const { rows } = this.step(`retention deletes record ${r}`)
      const { mark, transactions, transactionsMost, wire } = rows[r]
      set(rows[r], { ...newRow, mark, transactions, transactionsMost, wire })
    }
    if (is !== 'accepted' || !this.is('jobs are lost')) return
    if (job !== 'none' && state.faults > 0) this.fault(`the job of record ${r} is lost`).rows[r].job = 'none'
    if (job === 'none' && !this.is('lost jobs stay lost'))
      this.step(`the job of record ${r} is inserted`).rows[r].job = 'due'
  }

  process(state: S, d: Index): void {
    const { process, isStale, capture, at } = state.daemons[d]
    const name = `daemon ${d}`
    if (process === 'runs' && isStale) this.step(`${name} writes a heartbeat`).daemons[d].isStale = false
    if (process === 'runs' && state.faults > 0) {
      this.fault(`${name} is suspended`).daemons[d].process = 'suspended'
      const next = this.fault(`kill ${name}`)
      set(next.daemons[d], { process: 'dead', ...noCapture, ...idle })
      stopWaiting(next, d)
    }
    if (process === 'runs') return
    if (!isStale)
      set(this.step(`the heartbeat of ${name} is too old`).daemons[d], { isStale: true, isLate: at !== 'idle' })
    if (process === 'suspended') this.chance(`${name} wakes up`).daemons[d].process = 'runs'
    if (process === 'suspended' && capture !== 'none' && !this.is('an idle capture is not ended'))
      set(this.step(`Postgres ends the capture of ${name}`).daemons[d], noCapture)
    if (process === 'dead' && isStale) this.startDaemon(this.step(`${name} starts as a new instance`), d)
  }

  startDaemon({ rows, daemons }: S, d: Index): void {
    for (const row of rows) if (row.claimedBy === d) row.claimedBy = null
    set(daemons[d], { process: 'runs', isStale: false })
  }

  /** One statement looks and locks. With "fine steps" others commit in between, as READ COMMITTED allows. */
  capture(state: S, d: Index): void {
    const { capture, rows } = state.daemons[d]
    const isFine = this.is('fine steps')
    const waiting = this.rows.filter((r) => {
      const { mark, state: is, isWritten } = state.rows[r]
      return mark === 'waiting' && (is === 'none' || (isEnd(is) && isWritten && this.hasMark(is)))
    })
    if (capture === 'none' && !this.isPaused(state) && waiting.some((r) => isFine || !hasLock(state, r))) {
      const next = this.step(`daemon ${d} captures: ${isFine ? 'looks' : 'locks'}`)
      set(next.daemons[d], { capture: 'looked', rows: waiting })
      if (!isFine) this.lock(next, d)
    }
    if (capture === 'looked') this.lock(this.step(`daemon ${d} captures: locks`), d)
    if (capture !== 'locked') return
    const next = this.step(`daemon ${d} captures: commits`)
    set(next.daemons[d], noCapture)
    for (const r of rows) this.insert(next.rows[r], r)
  }

  lock(next: S, d: Index): void {
    const locked: Index[] = []
    for (const r of next.daemons[d].rows) {
      if (hasLock(next, r) || next.rows[r].mark !== 'waiting') continue
      const isBehind = r === 1 && next.daemons[d].rows.includes(0) && !locked.includes(0)
      if (!isBehind || this.is('a later row of the key is captured first')) locked.push(r)
      if (this.is('a row is marked before its capture')) next.rows[r].mark = 'queued'
    }
    set(next.daemons[d], { capture: 'locked', rows: locked })
  }

  /** A waiting row that has a record is only flagged, to be written back again. */
  insert(row: Row, r: Index): void {
    const isKnown = row.state !== 'none'
    if (isKnown && this.is('a row may have two records')) throw new Broken(`row ${r} has two records`)
    if (isKnown) row.isWritten = this.is('a row that is set back is not flagged')
    else set(row, { state: 'queued', mark: this.is('end only') ? 'waiting' : 'queued' })
  }

  /** Claims a submission, a poll, or what a dead instance left. */
  claim(state: S, d: Index, r: Index): void {
    const row = state.rows[r]
    const { state: is, job, transaction, claimedBy } = row
    const isIdle = state.daemons[d].at === 'idle'
    if (isIdle && ((is === 'queued' && !this.isHeldBack(state, r)) || job === 'due')) {
      const next = this.step(`daemon ${d} claims ${is === 'queued' ? 'record' : 'the poll of record'} ${r}`)
      const claim = { claim: this.newClaim(next, r), claimedBy: d }
      if (!this.findsItself(next, d)) return
      set(next.daemons[d], { at: is === 'queued' ? 'claimed' : 'polls', row: r, claim: claim.claim, transaction })
      if (is !== 'queued') set(next.rows[r], { job: 'fetched', ...claim })
      else if (!this.is('a request is sent before its claim')) this.move(next.rows[r], 'sending', claim)
    }
    const isOrphan = claimedBy === null || (claimedBy !== d && state.daemons[claimedBy].isStale)
    if (is === 'sending' && isOrphan && !this.is('the requests of a dead instance stay'))
      this.move(this.step(`daemon ${d}: record ${r} may have been sent`).rows[r], 'uncertain', { mayHaveArrived: true })
    if (job === 'fetched' && isOrphan && !this.is('the polls of a dead instance stay'))
      set(this.step(`daemon ${d} takes over the poll of record ${r}`).rows[r], { claimedBy: null, job: 'due' })
    if (row.isToRefresh && (canReplay(row) || this.is('a mark of --refresh stays and counts in each state')))
      this.move(this.step(`daemon ${d} maps record ${r} anew`).rows[r], 'queued', { isToRefresh: false })
  }

  /** Sends what was claimed, and writes the outcome under the fence: only if the claim still stands. */
  request(state: S, d: Index): void {
    const { at, row: r, claim, isLate, transaction } = state.daemons[d]
    const row = state.rows[r]
    const isOwn = row.claimedBy === d || this.is('the fence is the number of the attempt')
    const hasClaim = isOwn && row.claim === claim && (row.state === 'sending' || row.state === 'accepted')
    if (at === 'claimed' && (!isLate || this.is('a request is sent after its deadline'))) {
      const next = this.step(`daemon ${d} sends record ${r}`)
      next.daemons[d].at = 'sent'
      next.rows[r].wire.push(d)
    }
    if (at === 'idle' || at === 'sent' || at === 'polls' || (at === 'claimed' && !isLate)) return
    const next = this.step(`daemon ${d} writes the outcome of record ${r}: ${at}`)
    set(next.daemons[d], idle)
    const isUnclaimed = row.state === 'queued' && this.is('a request is sent before its claim')
    if (hasClaim || isUnclaimed || this.is('an outcome has no fence')) this.outcome(next.rows[r], at, transaction)
    if (at !== '200' || !hasClaim || !this.is('a job is inserted after the acceptance')) return
    set(next.rows[r], { job: 'none', claimedBy: d })
    set(next.daemons[d], { at: 'owes a job', row: r })
  }

  outcome(row: Row, at: State['daemons'][0]['at'], transaction: number): void {
    if (at === 'owes a job') set(row, { job: 'due', claimedBy: null })
    else if (at === '200' || at === 'pending') this.move(row, 'accepted', { transaction })
    else if (at === '400') this.move(row, 'rejected')
    else if (at === 'completed' || at === 'failed') this.move(row, at)
    else if (at === 'nothing' || (at === 'E003' && row.mayHaveArrived))
      this.move(row, 'uncertain', { mayHaveArrived: true })
    else this.move(row, 'queued') // 503, E003, or given back unsent
  }

  service(state: S, r: Index): void {
    const { wire, transactions } = state.rows[r]
    const canFail = state.faults > 0
    for (const [k, d] of wire.entries()) {
      const arrive = (next: S, at: Answer) => {
        next.rows[r].wire.splice(k, 1)
        if (d !== null) set(next.daemons[d], { at, transaction: transactions.length })
        return next
      }
      this.store(arrive(this.step(`record ${r} is stored: 200`), '200'), r)
      if (!canFail) continue
      this.store(arrive(this.fault(`record ${r} is stored, the answer is lost`), 'nothing'), r)
      arrive(this.fault(`record ${r} is refused: 400`), '400')
      arrive(this.fault(`record ${r} is refused: 503`), '503')
      arrive(this.fault(`record ${r} is lost on its way`), 'nothing')
      if (d !== null) stopWaiting(this.fault(`daemon ${d} waits no longer`), d)
    }
    for (const d of this.daemons) {
      const { at, row, transaction } = state.daemons[d]
      if (at !== 'polls' || row !== r) continue
      const answer = (next: S, at: Answer) => {
        next.daemons[d].at = at
        if (at !== 'pending') next.rows[r].transactions[transaction] = at === 'completed' ? 'completed' : 'failed'
      }
      const is = transactions[transaction]
      if (is === 'failed') answer(this.step(`GET of record ${r}: E003`), 'E003')
      else answer(this.step(`GET of record ${r}: completed`), 'completed')
      if (is !== 'pending') continue
      answer(this.step(`GET of record ${r}: pending`), 'pending')
      if (!canFail) continue
      answer(this.fault(`GET of record ${r}: failed`), 'failed')
      answer(this.fault(`GET of record ${r}: E003`), 'E003')
    }
  }

  store({ rows }: S, r: Index): void {
    const { transactions, transactionsMost } = rows[r]
    transactions.push('pending')
    if (transactions.filter((is) => is !== 'failed').length > transactionsMost)
      throw new Broken(`row ${r} is at the service too often`)
    const isEarly = r === 1 && rows[0].transactions.length === 0 && !['failed', 'rejected'].includes(rows[0].state)
    // A person who replays row 0 changes the order.
    if (isEarly && this.size.acts === 0) throw new Broken('row 1 arrives before row 0')
  }

  /** Operators ask the service first, and tell the truth. */
  operator(state: S, r: Index): void {
    const row = state.rows[r]
    const { state: is, transactions, wire } = row
    const act = (what: string) => {
      const next = this.chance(`operator: ${what} ${r}`)
      next.acts--
      return next.rows[r]
    }
    if (state.acts === 0) return
    if (canReplay(row) || (is === 'failed' && this.is('what may have arrived is replayed in bulk'))) {
      this.move(act('replay'), 'queued')
      act('replay --refresh').isToRefresh = true
    }
    const stored = transactions.filter((is) => is !== 'failed').length
    const isOver =
      wire.length === 0 && !state.daemons.some(({ at, row, isLate }) => at === 'claimed' && row === r && !isLate)
    if (['queued', 'accepted', 'failed', 'rejected', 'uncertain'].includes(is))
      this.move(act('discard'), 'discarded', { transactionsMost: isOver ? stored : row.transactionsMost })
    if (is !== 'uncertain') return
    const transaction = transactions.findIndex((is) => is !== 'failed')
    if (stored > 0) this.move(act('resolve --arrived'), 'accepted', { transaction, mayHaveArrived: true })
    else if (isOver || this.is('resolve --not-arrived before the request is over'))
      this.move(act('resolve --not-arrived'), 'queued')
  }

  /** The job is deleted, and inserted anew if the record is accepted. An insert whose id is there does nothing. */
  move(row: Row, state: Row['state'], more: Partial<Row> = {}): void {
    const isToRefresh = row.isToRefresh && this.is('a mark of --refresh stays and counts in each state')
    const isKept = row.job !== 'none' && this.is('a job is completed and not deleted')
    const jobAnew = state === 'accepted' ? 'due' : 'none'
    const job = isKept ? 'completed' : jobAnew
    const claim = this.is('the fence is the number of the attempt') ? row.claim : 0
    set(row, { state, isWritten: false, claimedBy: null, claim, isToRefresh, job, ...more })
  }

  isPaused(_state: S): boolean {
    return false
  }

  /** Asked with each claim: true if the database is the one that the daemon wrote to. */
  findsItself(_next: S, _d: Index): boolean {
    return true
  }

  /** The daemon's number stands for the claim's uuid, because it has one request at a time. */
  newClaim(_next: S, _r: Index): number {
    return 0
  }

  /** True if the row's table has a mark for this end. */
  hasMark(state: Row['state']): boolean {
    return state === 'completed' || !this.is('a mark only for completed')
  }

  isHeldBack({ rows }: S, r: Index): boolean {
    const { state: is } = rows[0]
    const hasFailed = this.is('KEY_ON_FAILURE=block') && (is === 'failed' || is === 'rejected')
    const isHolding = hasFailed || is === 'queued' || is === 'sending' || is === 'uncertain'
    return r === 1 && isHolding && !this.is('the key holds nothing back')
  }

  isEnd(state: S): boolean {
    if (state.daemons.every(({ process }) => process === 'suspended')) return true
    return this.rows.every((r) => {
      const { state: is, mark, isWritten } = state.rows[r]
      if (is === 'none') return mark === 'completed' || mark === 'discarded'
      if (is === 'queued' && this.isHeldBack(state, r)) return isEnd(state.rows[0].state)
      return isEnd(is) && isWritten && (mark === is || !this.hasMark(is))
    })
  }
}

const isEnd = (state: Row['state']): state is End => !['none', 'queued', 'sending', 'accepted'].includes(state)
const canReplay = ({ state, mayHaveArrived }: Row) => (state === 'failed' || state === 'rejected') && !mayHaveArrived

/** True if the ERP or a capture has locked the row. */
const hasLock = ({ rows, daemons }: State, r: Index) =>
  rows[r].isLocked || daemons.some(({ capture, rows }) => capture === 'locked' && rows.includes(r))

/** The daemon gives up its request; what is on its way may still arrive. */
function stopWaiting({ rows, daemons }: State, d: Index): void {
  if (daemons[d].at === 'sent') daemons[d].at = 'nothing'
  for (const { wire } of rows) if (wire.includes(d)) wire[wire.indexOf(d)] = null
}
