import { Broken, type Index, Model, repeat, set, upTo } from './checker.ts'

const newRow = {
  writer: 'none' as 'none' | 'drew' | 'open' | 'committed' | 'rolled back',
  record: 'none' as 'none' | 'queued' | 'ended' | 'reported',
  wasSent: false,
}
/** `highest`: the position that is safe when the `writers` have ended. `rows`: only if they are read before the position. */
const newDaemon = { safe: -1, highest: -1, writers: [] as Index[], rows: null as Index[] | null }
const newState = { rows: repeat(1, newRow), daemons: repeat(2, newDaemon), position: -1, isReread: false, faults: 0 }
type State = typeof newState

/** A table whose rows are never changed. Its sequence gives numbers in order, but the rows commit in any order. */
export class AppendOnly extends Model<State> {
  readonly rows = upTo(this.size.rows)

  begin(): State {
    return { ...newState, rows: repeat(this.size.rows, newRow) }
  }

  steps(state: State): void {
    const { rows, daemons, position } = state
    const drawsAhead = this.is('numbers are drawn ahead')
    for (const r of this.rows) {
      const { writer, record, wasSent } = rows[r]
      const isNext = this.rows.every((q) => q >= r || rows[q].writer !== 'none')
      if (writer === 'none' && isNext)
        this.step(`a writer draws number ${r}`).rows[r].writer = drawsAhead ? 'drew' : 'open'
      if (writer === 'drew') this.step(`the writer of ${r} inserts`).rows[r].writer = 'open'
      if (writer === 'open') this.step(`the writer of ${r} commits`).rows[r].writer = 'committed'
      if (writer === 'open') this.step(`the writer of ${r} rolls back`).rows[r].writer = 'rolled back'
      if (record === 'queued') {
        set(this.step(`record ${r} is sent and ends`).rows[r], { record: 'ended', wasSent: true })
        if (wasSent) throw new Broken(`row ${r} is sent twice`)
      }
      const mayGo = r <= position || this.is('retention deletes records ahead of the position')
      if (record === 'ended' && mayGo && this.is('retention'))
        this.step(`retention deletes record ${r}`).rows[r].record = 'none'
      const isBehind = writer === 'committed' && record === 'none' && r <= position
      if (isBehind && this.is('rows behind the position are sent'))
        this.step(`row ${r} is found behind`).rows[r].record = 'queued'
      else if (isBehind && !wasSent && drawsAhead && !this.is('rows behind the position are not reported'))
        this.step(`row ${r} is found behind, and reported`).rows[r].record = 'reported'
    }
    for (const d of [0, 1] as const) {
      const { safe, rows } = daemons[d]
      this.look(this.step(`daemon ${d} reads the position`), d)
      const readsEarly = this.is('rows are read before the position')
      if (readsEarly && !rows) this.step(`daemon ${d} reads rows`).daemons[d].rows = this.uncaptured(state)
      else if (safe > position) this.advance(this.step(`daemon ${d} advances the position`), d)
      if (this.uncaptured(state).length > 0) this.capture(this.step(`daemon ${d} captures`))
    }
    if (!this.is('the position may go back') || state.isReread) return
    set(this.step('the table is read from its beginning'), { position: -1, isReread: true })
  }

  /** The highest number is safe when all that wrote at that time have ended. */
  look({ rows, daemons }: State, d: Index): void {
    const daemon = daemons[d]
    const highest = Math.max(-1, ...this.rows.filter((r) => rows[r].writer === 'committed'))
    const writers = this.is('open writers are not looked at') ? [] : this.rows.filter((r) => rows[r].writer === 'open')
    if (daemon.writers.length > 0 && !daemon.writers.some((r) => writers.includes(r)))
      set(daemon, { safe: daemon.highest, writers: [] })
    if (highest > daemon.safe && writers.length === 0) set(daemon, { safe: highest, writers: [] })
    else if (highest > daemon.safe && daemon.writers.length === 0) set(daemon, { highest, writers })
    if (daemon.writers.length === 0) daemon.highest = -1
  }

  /** The position stops before the first row that is not captured. */
  advance(next: State, d: Index): void {
    const { safe, rows } = next.daemons[d]
    const [first = safe + 1] = rows ?? this.uncaptured(next)
    next.position = Math.max(next.position, Math.min(safe, first - 1))
    next.daemons[d].rows = null
  }

  /** Also takes rows that are not safe yet: they have records then, and lie ahead of the position. */
  capture(next: State): void {
    for (const r of this.uncaptured(next)) next.rows[r].record = 'queued'
  }

  uncaptured({ rows, position }: State): Index[] {
    return this.rows.filter((r) => rows[r].writer === 'committed' && rows[r].record === 'none' && r > position)
  }

  isEnd({ rows }: State): boolean {
    return this.rows.every((r) => rows[r].writer === 'rolled back' || rows[r].wasSent || rows[r].record === 'reported')
  }
}
