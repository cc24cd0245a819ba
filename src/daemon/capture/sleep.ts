/** What came of saying that we sleep. */
type Mark = 'marked' | 'another' | 'writers' | 'unavailable'

export interface SleepDeps {
  /** Says to those who insert rows that we sleep: from then on they notify us. */
  mark(): Promise<Mark>
  isMarked(): boolean
  unmark(): void
  hasNew(): Promise<boolean>
  /** Begins a round of capture. */
  wake(): void
  /** Milliseconds on a clock that never runs backward. */
  elapsedMs(): number
}

export type Sleep = ReturnType<typeof createSleep>

/** Rows come in bursts: those that come faster than this are found by looking. */
const restMs = 25
/** Who inserted before we slept does not notify: we look again after these times, until their transactions have ended. */
const againMinMs = 10
const againMaxMs = 100

/**
 * Decides between sleeping and looking again. A NOTIFY costs the ERP a lock of its whole cluster, so that none is to be sent
 * while capture is awake.
 *
 * After the mark is set we look once more: every row of which we were not told is visible by then, since those who
 * insert without telling hold the mark off until they have ended (migrations/outbox_wake.sql). The sweep goes on whatever happens
 * here, and nothing of this is waited for: a connection that is half open must not hold up capture.
 */
export function createSleep({ mark, isMarked, unmark, hasNew, wake, elapsedMs }: SleepDeps) {
  let markedAtMs = Number.NEGATIVE_INFINITY
  let againMs = againMinMs
  let isTrying = false
  let isUnseen = false
  let isInVain = false

  let looksAgain = false

  function lookAgain(afterMs: number): void {
    if (looksAgain) return
    looksAgain = true
    setTimeout(() => {
      looksAgain = false
      wake()
    }, afterMs).unref()
  }

  async function tryMark(): Promise<void> {
    const result = await mark()
    if (result === 'writers') {
      lookAgain(againMs)
      againMs = Math.min(againMaxMs, againMs * 2)
      return
    }
    againMs = againMinMs
    if (result !== 'marked') return
    markedAtMs = elapsedMs()
    isUnseen = true
    wake()
  }

  return {
    /** A round took rows and there may be more. */
    stayAwake(): void {
      isUnseen = false
      unmark()
    },
    /** A round took this many rows, and for now no more. The next insert wakes us, or we look again. */
    async fallAsleep(took: number): Promise<void> {
      if (isMarked() && !isUnseen) return
      isUnseen = false
      const restedMs = elapsedMs() - markedAtMs
      const wasInVain = isInVain
      isInVain = false
      if (took > 0) return lookAgain(restMs)
      if (await hasNew()) {
        // Seen twice, these are rows that we may not take yet: the sweep will, and those that come now need not tell us.
        unmark()
        isInVain = true
        return wasInVain ? undefined : lookAgain(restMs)
      }
      if (isMarked() || isTrying) return
      if (restedMs < restMs) return lookAgain(restMs - restedMs)
      isTrying = true
      void tryMark().finally(() => {
        isTrying = false
      })
    },
  }
}
