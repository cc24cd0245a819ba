export interface ReloadAnsweringDeps {
  /** The number of the question that waits for an answer; null where nobody has asked. */
  readAsked(): Promise<number | null>
  /** Reads the files again, and takes them into force where that is possible. @returns what keeps them from that */
  reload(): Promise<string | null>
  answer(answer: { asked: number; problem: string | null }): Promise<void>
  /** The next round tries again. */
  onFailed(error: unknown): void
}

/** Does what `outboxd reload` asks for, and says what came of it. Never throws. */
export interface ReloadAnswering {
  runOnce(): Promise<void>
}

export function createReloadAnswering(deps: ReloadAnsweringDeps): ReloadAnswering {
  let isUnderWay = false

  async function answerOnce(): Promise<void> {
    const asked = await deps.readAsked()
    if (asked === null) return
    await deps.answer({ asked, problem: await deps.reload() })
  }

  return {
    async runOnce() {
      if (isUnderWay) return
      isUnderWay = true
      await answerOnce().catch(deps.onFailed)
      isUnderWay = false
    },
  }
}
