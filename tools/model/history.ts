import { Broken, type Index, repeat, set, upTo } from './checker.ts'
import { Lifecycle, newRow, noCapture, type Row, type State } from './lifecycle.ts'

/** What can happen to the database, and which part of the ledger's identity then differs from the server's. */
const restores = {
  'a point-in-time recovery': 'timeline',
  'a failover to a synchronous standby': 'timeline',
  'a copy from a template': 'database',
  'an upgrade of an old copy': 'system',
  pg_restore: 'table',
  'COPY of old rows': 'writer',
  'the disk is put back': null,
  'pg_restore of the ledger only': 'table',
  'the ledger is dropped': null,
} as const
type Kind = keyof typeof restores

/** What a backup does not hold: the ERP's lock, and what is at the service or on its way. */
const outside = { isLocked: false, transactions: [], wire: [] }

const newPast = {
  restores: 1,
  backup: null as Row[] | null,
  /** The parts of the identity that differ, now and after the next restore of the backup. */
  differs: [] as string[],
  backupDiffers: [] as string[],
  /** The daemons that wrote since the backup; those that remember something of it; and those that the database has forgotten. */
  wrote: repeat(2, false),
  remembers: repeat(2, false),
  isForgotten: repeat(2, false),
  /** The daemons that have seen the identity which the ledger has. */
  knows: repeat(2, false),
  isNew: false,
  isPaused: false,
  pauses: 0,
  openAtPause: [] as Index[],
  hasLoss: false,
}
interface PastState extends State {
  past: typeof newPast
}

/** The lifecycle with restores: the daemons and the service know what the database has forgotten. */
export class History extends Lifecycle<PastState> {
  override begin(): PastState {
    const begin = super.begin()
    const backup = this.is('the backup is of the beginning') ? begin.rows : null
    return { ...begin, past: { ...newPast, backup, restores: this.size.restores } }
  }

  /** The ERP leaves rows alone. */
  override erp(): void {}

  override steps(state: PastState): void {
    super.steps(state)
    const { backup, isPaused, hasLoss, restores: left, wrote } = state.past
    for (const d of this.daemons) {
      const { process, isStale } = state.daemons[d]
      if (process === 'runs' && !isStale) this.findsItself(this.step(`daemon ${d} writes a heartbeat`), d, false)
    }
    if (isPaused) this.recover(this.step('operator: recover'))
    if (isPaused && !hasLoss) endPause(this.step('operator: recover --nothing-lost'))
    if (!backup) this.chance('a backup is made').past.backup = state.rows.map((row) => ({ ...row, ...outside }))
    const haveWritten = this.daemons.every((d) => state.daemons[d].process === 'dead' || wrote[d])
    if (!backup || left === 0 || (this.is('each daemon wrote since the backup') && !haveWritten)) return
    for (const kind of Object.keys(restores) as Kind[]) if (this.is(kind)) this.restore(this.chance(`! ${kind}`), kind)
  }

  restore({ rows, daemons, past }: PastState, kind: Kind): void {
    const part = restores[kind]
    past.restores--
    for (const d of this.daemons) set(daemons[d], noCapture)
    for (const differs of [past.differs, past.backupDiffers]) if (part && !differs.includes(part)) differs.push(part)
    if (kind === 'a failover to a synchronous standby') return
    set(past, { hasLoss: true, isPaused: false, differs: [...past.backupDiffers], isForgotten: past.remembers })
    const isDropped = kind === 'the ledger is dropped'
    if (isDropped) set(past, { isNew: true, differs: [], isForgotten: repeat(2, true) })
    for (const r of this.rows) {
      const { mark, transactions, wire } = rows[r]
      const old = (!isDropped && past.backup?.[r]) || newRow
      const isLedgerOnly = isDropped || kind === 'pg_restore of the ledger only'
      set(rows[r], { ...old, transactions, wire, mark: isLedgerOnly ? mark : old.mark })
    }
  }

  override startDaemon(next: PastState, d: Index): void {
    super.startDaemon(next, d)
    next.past.remembers[d] = next.past.isForgotten[d] = next.past.knows[d] = false
  }

  override isPaused({ past }: PastState): boolean {
    return past.isPaused
  }

  /** With each heartbeat and claim a daemon looks for the identity, its own last heartbeat and its newest request. */
  override findsItself(next: PastState, d: Index, isClaim = true): boolean {
    const { past } = next
    if (past.isPaused) {
      if (!this.is('a daemon remembers during the pause')) past.isForgotten[d] = false
      return false
    }
    const hasRows = this.is('end only') || next.rows.some(({ mark }) => mark !== 'waiting' && mark !== 'completed')
    const asks = past.isNew && hasRows && !this.is('a new ledger does not ask')
    past.isNew &&= asks
    const differs = past.differs.filter((part) => !this.is(`the identity has no ${part}`))
    const takesTimeline =
      this.is('LEDGER_STANDBY=synchronous') && (past.knows[d] || this.is('a new daemon takes a new timeline'))
    if (asks || past.isForgotten[d] || differs.some((part) => part !== 'timeline' || !takesTimeline)) {
      if (++past.pauses > 2 * (this.size.restores - past.restores))
        throw new Broken('paused again, although nothing was restored')
      set(past, { isPaused: true, openAtPause: this.rows.filter((r) => isOpen(next.rows[r])) })
      return this.findsItself(next, d)
    }
    if (differs.length > 0) past.differs = []
    past.knows[d] = true
    if (!past.backup) return true
    past.wrote[d] = true
    if (!this.is(isClaim ? 'only heartbeats are found' : 'only requests are found')) past.remembers[d] = true
    return true
  }

  recover(next: PastState): void {
    const { openAtPause } = next.past
    for (const r of this.rows) {
      const row = next.rows[r]
      const wasOpen = openAtPause.includes(r) || !this.is('recover takes what was open at the pause')
      const takesOpen = isOpen(row) && wasOpen && !this.is('recover leaves what is open')
      const isMarked = !['waiting', 'completed', 'discarded'].includes(row.mark)
      const takesMarked = isMarked && row.state === 'none' && !this.is('recover leaves marked rows')
      if (takesOpen || takesMarked) this.move(row, 'uncertain')
      if (row.state === 'accepted' && !this.is('recover leaves the jobs'))
        set(row, { job: 'due', claimedBy: null, claim: 0 })
      if (row.state !== 'none' && !this.is('recovered records cannot have arrived')) row.mayHaveArrived = true
    }
    endPause(next)
  }

  override newClaim({ rows, daemons, past }: PastState, r: Index): number {
    if (this.is('the fence is the number of the attempt')) return rows[r].claim + 1
    const used = [...rows, ...daemons, ...(past.backup ?? [])].map(({ claim }) => claim)
    return upTo(8).find((claim) => claim > 0 && !used.includes(claim)) ?? 8
  }

  override isEnd(state: PastState): boolean {
    return state.past.isPaused || super.isEnd(state)
  }
}

function endPause({ past }: PastState): void {
  set(past, { isPaused: false, differs: [], openAtPause: [], isNew: false, hasLoss: false })
}

const isOpen = ({ state, mark }: Row) =>
  ['queued', 'sending'].includes(state) || (state === 'none' && mark === 'waiting')
