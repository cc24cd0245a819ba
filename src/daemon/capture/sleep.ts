type SleepFlagResult = 'marked' | 'another' | 'writers' | 'unavailable'

export interface SleepDeps {
  /** Sets the sleep flag, a lock. While the flag is set, inserts send a NOTIFY. */
  setSleepFlag(): Promise<SleepFlagResult>
  isSleepFlagSet(): boolean
  clearSleepFlag(): void
  hasNewRows(): Promise<boolean>
  wake(): void
  elapsedMs(): number
}

export type SleepFlagKeeper = ReturnType<typeof createSleepFlagKeeper>

const restMs = 25
/**
 * Transactions that inserted before the sleep flag was set send no NOTIFY. Until these transactions end, the outbox is
 * read again, after waits between these bounds.
 */
const againMinMs = 10
const againMaxMs = 100

/**
 * Decides between sleeping and polling. A NOTIFY takes a lock of the ERP's whole cluster, so inserts send one only
 * while the daemon's sleep flag is set.
 *
 * After the flag is set, the outbox is read once more. By then all rows inserted without a NOTIFY are visible, because
 * their transactions delay the flag (migrations/outbox_wake.sql). Setting the flag is not awaited, because a half-open
 * connection must not stop capture.
 */
export function createSleepFlagKeeper({
  setSleepFlag,
  isSleepFlagSet,
  clearSleepFlag,
  hasNewRows,
  wake,
  elapsedMs,
}: SleepDeps) {
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
    const result = await setSleepFlag()
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
    /** True while a new row wakes this instance. */
    isAsleep: (): boolean => isSleepFlagSet() && !isUnseen,
    stayAwake(): void {
      isUnseen = false
      clearSleepFlag()
    },
    async fallAsleep(capturedCount: number): Promise<void> {
      if (isSleepFlagSet() && !isUnseen) return
      isUnseen = false
      const restedMs = elapsedMs() - markedAtMs
      const wasInVain = isInVain
      isInVain = false
      if (capturedCount > 0) return lookAgain(restMs)
      if (await hasNewRows()) {
        // If rows are found twice, they cannot be captured now. The sweep each second finds them again.
        clearSleepFlag()
        isInVain = true
        return wasInVain ? undefined : lookAgain(restMs)
      }
      if (isSleepFlagSet() || isTrying) return
      if (restedMs < restMs) return lookAgain(restMs - restedMs)
      isTrying = true
      void tryMark().finally(() => {
        isTrying = false
      })
    },
  }
}
