import { mayHaveWaitingRows } from '../../outbox/readRows.ts'
import type { CaptureContext } from './capture.ts'

const restMs = 25
/**
 * Transactions that inserted before the sleep flag was set send no NOTIFY. Until these transactions end, the outbox is
 * read again, after waits between these bounds.
 */
const againMinMs = 10
const againMaxMs = 100

/**
 * Decides between sleeping and polling. A NOTIFY takes a lock of the ERP's whole cluster, so inserts send one only
 * while the daemon's sleep flag, a lock, is set.
 *
 * After the flag is set, the outbox is read once more. By then all rows inserted without a NOTIFY are visible, because
 * their transactions delay the flag (migrations/outbox_wake.sql). Setting the flag is not awaited, because a half-open
 * connection must not stop capture.
 */
export class SleepFlagKeeper {
  readonly #databases: Pick<CaptureContext['databases'], 'listener' | 'outbox'>
  readonly #wakeup: { wake(): void }
  readonly #elapsedMs: () => number
  #markedAtMs = Number.NEGATIVE_INFINITY
  #againMs = againMinMs
  #isTrying = false
  #isUnseen = false
  #isInVain = false
  #looksAgain = false

  constructor(
    databases: Pick<CaptureContext['databases'], 'listener' | 'outbox'>,
    wakeup: { wake(): void },
    elapsedMs: () => number,
  ) {
    this.#databases = databases
    this.#wakeup = wakeup
    this.#elapsedMs = elapsedMs
  }

  /** True while a new row wakes this instance. */
  isAsleep(): boolean {
    return this.#isFlagSet() && !this.#isUnseen
  }

  stayAwake(): void {
    this.#isUnseen = false
    this.#databases.listener?.clearSleepFlag()
  }

  async fallAsleep(capturedCount: number): Promise<void> {
    if (this.isAsleep()) return
    this.#isUnseen = false
    const restedMs = this.#elapsedMs() - this.#markedAtMs
    const wasInVain = this.#isInVain
    this.#isInVain = false
    if (capturedCount > 0) return this.#lookAgain(restMs)
    if (await mayHaveWaitingRows(this.#databases.outbox)) {
      // If rows are found twice, they cannot be captured now. The sweep each second finds them again.
      this.#databases.listener?.clearSleepFlag()
      this.#isInVain = true
      return wasInVain ? undefined : this.#lookAgain(restMs)
    }
    if (this.#isFlagSet() || this.#isTrying) return
    if (restedMs < restMs) return this.#lookAgain(restMs - restedMs)
    this.#isTrying = true
    void this.#trySetFlag().finally(() => {
      this.#isTrying = false
    })
  }

  #isFlagSet(): boolean {
    return this.#databases.listener?.isSleepFlagSet() ?? false
  }

  #lookAgain(afterMs: number): void {
    if (this.#looksAgain) return
    this.#looksAgain = true
    setTimeout(() => {
      this.#looksAgain = false
      this.#wakeup.wake()
    }, afterMs).unref()
  }

  async #trySetFlag(): Promise<void> {
    const result = await this.#databases.listener?.setSleepFlag()
    if (result === 'writers') {
      this.#lookAgain(this.#againMs)
      this.#againMs = Math.min(againMaxMs, this.#againMs * 2)
      return
    }
    this.#againMs = againMinMs
    if (result !== 'marked') return
    this.#markedAtMs = this.#elapsedMs()
    this.#isUnseen = true
    this.#wakeup.wake()
  }
}
