import { Broken, type Index, Model, repeat, set } from './checker.ts'

/** Ticks. A request is sent at most DEADLINE after its claim, and arrives at most its timeout after that. */
const DEADLINE = 1
const WINDOW = 3
/** The end of a request when the database's clock was set back, and when the database has forgotten the request. */
const FAR = 50
const LOST = -20

interface Request {
  daemon: Index | null
  at: 'uncommitted' | 'claimed' | 'sent' | 'answered' | 'left'
  age: number
  /** In how many ticks it arrives at the latest; -1 if it is not on its way. */
  arrivesIn: number
  /** In how many ticks it is over at the latest. It counts for one window after that. */
  overIn: number
  isAfterChange: boolean
}
const left = { daemon: null, at: 'left', age: 0 } as const
/** `claim`: null, or how many requests counted when an open claim began. */
const newDaemon = { process: 'runs' as 'runs' | 'suspended' | 'dead', claim: null as number | null, knowsChange: false }
const newState = {
  requests: [] as Request[],
  arrivals: [] as { age: number; isAfterChange: boolean }[],
  daemons: repeat(2, newDaemon),
  isChanged: false,
  faults: 0,
}
type State = typeof newState

/** The log of requests. A step is a statement, or a tick of all clocks. */
export class Budget extends Model<State> {
  readonly timeouts = [1, this.is('timeouts differ') ? 3 : 1]

  begin(): State {
    return { ...newState, faults: this.size.faults }
  }

  steps(state: State): void {
    const { requests, faults } = state
    const furthest = DEADLINE + Math.max(...this.timeouts)
    if (!requests.some(({ arrivesIn }) => arrivesIn === 0)) this.tick(this.step('a tick'))
    for (const d of [0, 1] as const) {
      this.process(state, d)
      if (state.daemons[d].process === 'runs') this.claim(state, d)
    }
    for (const [k, request] of requests.entries()) this.request(state, k, request)
    if (requests.some(({ overIn }) => overIn === FAR) && !this.is('an end too far ahead is kept'))
      move(this.step('ends that are too far ahead are moved'), FAR, furthest)
    if (faults > 0 && this.is('the clock of the database is set back'))
      move(this.fault('the clock is set back by a year'), null, FAR)
    if (faults === 0 || !this.is('the database is put back')) return
    const next = this.fault('the database is put back, and `recover` counts the whole limit as spent')
    const overIn = this.is('what recover counts is over at once') ? 0 : furthest
    move(next, null, LOST)
    for (let i = this.is('recover counts nothing') ? this.size.limit : 0; i < this.size.limit; i++)
      next.requests.push({ ...left, arrivesIn: -1, overIn, isAfterChange: next.isChanged })
  }

  tick(next: State): void {
    for (const request of next.requests) {
      const { daemon, at, age, arrivesIn, overIn } = request
      const sleeps = daemon !== null && next.daemons[daemon].process === 'suspended'
      const isOpen = at === 'uncommitted' || at === 'claimed'
      if (isOpen && !(sleeps && this.is('the deadline stands still in sleep')))
        request.age = Math.min(age + 1, DEADLINE + 1)
      request.arrivesIn = Math.max(arrivesIn - 1, -1)
      if (overIn !== FAR && overIn !== LOST) request.overIn = Math.max(overIn - 1, -WINDOW)
    }
    for (const arrival of next.arrivals) arrival.age++
    next.arrivals = next.arrivals.filter(({ age }) => age < WINDOW)
  }

  process(state: State, d: Index): void {
    const { process, claim } = state.daemons[d]
    if (process === 'dead')
      set(this.step(`daemon ${d} starts`).daemons[d], { process: 'runs', knowsChange: state.isChanged })
    if (process === 'suspended') this.chance(`daemon ${d} wakes up`).daemons[d].process = 'runs'
    if (process === 'suspended' && claim !== null && !this.is('an idle claim is not ended'))
      rollBack(this.step(`Postgres ends the claim of daemon ${d}`), d)
    if (process !== 'runs') return
    const isChange = this.is('the limit becomes lower') || this.is('the window becomes longer')
    if (isChange && !state.isChanged && !state.requests.some(({ daemon }) => daemon === d)) {
      const next = this.step(`daemon ${d} restarts with the change`)
      next.isChanged = next.daemons[d].knowsChange = true
    }
    if (state.faults === 0) return
    this.fault(`daemon ${d} is suspended`).daemons[d].process = 'suspended'
    const next = this.fault(`kill daemon ${d}`)
    next.daemons[d].process = 'dead'
    rollBack(next, d)
    for (const request of next.requests) if (request.daemon === d) set(request, left)
  }

  /** Locks the row of the ledger; counts and inserts; commits. */
  claim({ daemons, requests, isChanged }: State, d: Index): void {
    const { claim, knowsChange } = daemons[d]
    const isOneStatement = this.is('a claim is one statement')
    const isInserted = requests.some(({ at }) => at === 'uncommitted')
    const isFree = requests.filter(({ daemon }) => daemon === d).length < this.size.inFlight
    if (claim === null && isFree && (isOneStatement || daemons.every(({ claim }) => claim === null)))
      this.step(`daemon ${d} locks the ledger`).daemons[d].claim = isOneStatement ? this.count(requests, isChanged) : 0
    if (claim !== null && !isInserted) {
      const next = this.step(`daemon ${d} counts and inserts`)
      const limit = this.limitOf(this.is('each daemon keeps its own limit') ? knowsChange : isChanged)
      const timeout = this.timeouts[this.is('the ledger has one timeout for all') ? 0 : d] ?? 0
      const overIn = DEADLINE + (this.is('the timeout is not counted') ? 0 : timeout)
      if ((isOneStatement ? claim : this.count(requests, isChanged)) >= limit) next.daemons[d].claim = null
      else next.requests.push({ daemon: d, at: 'uncommitted', age: 0, arrivesIn: -1, overIn, isAfterChange: isChanged })
    }
    if (!requests.some(({ daemon, at }) => daemon === d && at === 'uncommitted')) return
    const next = this.step(`the commit of daemon ${d} returns`)
    next.daemons[d].claim = null
    for (const request of next.requests)
      if (request.at === 'uncommitted')
        set(request, { at: 'claimed', age: this.is('the deadline begins with the commit') ? 0 : request.age })
  }

  request({ daemons }: State, k: number, { daemon: d, at, age, arrivesIn, overIn }: Request): void {
    const free = overIn === LOST ? LOST : -WINDOW
    const change = (next: State, fields: Partial<Request>) => {
      const request = set(next.requests[k] as Request, fields)
      if (fields.arrivesIn === -1) this.arrive(next, request)
    }
    if (arrivesIn >= 0)
      change(this.step(`a request of daemon ${d} arrives`), { arrivesIn: -1, at: at === 'sent' ? 'answered' : at })
    if (arrivesIn >= 0) change(this.chance(`a request of daemon ${d} arrives, its answer is lost`), { arrivesIn: -1 })
    if (d === null || daemons[d].process !== 'runs') return
    if (at === 'claimed' && (age <= DEADLINE || this.is('a request is sent after its deadline')))
      change(this.step(`daemon ${d} sends`), { at: 'sent', age: 0, arrivesIn: this.timeouts[d] ?? 0 })
    else if (at === 'claimed') change(this.step(`daemon ${d} gives a request back unsent`), { ...left, overIn: free })
    const over = overIn === LOST ? LOST : 0
    const answered = this.is('an answered request is free at once') ? free : over
    if (at === 'answered') change(this.step(`daemon ${d} writes an answer`), { ...left, overIn: answered })
    const unanswered = this.is('an unanswered request is free at once') ? free : overIn
    if (at === 'sent' && arrivesIn < 0) change(this.step(`daemon ${d} gets no answer`), { ...left, overIn: unanswered })
  }

  arrive({ arrivals }: State, { isAfterChange }: Request): void {
    arrivals.push({ age: 0, isAfterChange })
    const isAfter = arrivals.some(({ isAfterChange }) => isAfterChange)
    const isJudged = isAfter || !this.is('the window becomes longer')
    if (isJudged && arrivals.length > this.limitOf(isAfter))
      throw new Broken(`${arrivals.length} requests arrive within a window`)
  }

  limitOf(isChanged: boolean): number {
    return isChanged && this.is('the limit becomes lower') ? this.size.limit - 1 : this.size.limit
  }

  count(requests: Request[], isChanged: boolean): number {
    const isShort = (isNew: boolean) => !isNew && this.is('the window becomes longer')
    const keepsWindow = this.is('a request keeps its window')
    if (this.is('requests are not counted')) return 0
    return requests.filter(
      ({ overIn, isAfterChange }) => overIn + WINDOW - (isShort(keepsWindow ? isAfterChange : isChanged) ? 1 : 0) > 0,
    ).length
  }

  override tidy(state: State): void {
    state.requests = state.requests.filter(
      ({ at, arrivesIn, overIn }) => at !== 'left' || arrivesIn >= 0 || overIn > -WINDOW,
    )
    for (const values of [state.requests, state.arrivals])
      values.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  }

  isEnd({ requests, isChanged, daemons }: State): boolean {
    return this.count(requests, isChanged) === 0 && daemons.every(({ claim }) => claim === null)
  }
}

function move({ requests }: State, from: number | null, to: number): void {
  for (const request of requests)
    if (request.overIn !== LOST && (from ?? request.overIn) === request.overIn) request.overIn = to
}

function rollBack(next: State, d: Index): void {
  next.daemons[d].claim = null
  next.requests = next.requests.filter(({ daemon, at }) => daemon !== d || at !== 'uncommitted')
}
