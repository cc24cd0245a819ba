export interface ReloadAnsweringDeps {
  /** Reads the files again, and takes them into force where that is possible. @returns what keeps them from that */
  reload(): Promise<string | null>
  answer(answer: { asked: number; problem: string | null }): Promise<void>
  /** It is asked for again. */
  onFailed(error: unknown): void
}

/** Does what `outboxd reload` asks for, and says what came of it. Never throws. */
export interface ReloadAnswering {
  /** @param asked the number of the question; those that come while one is answered are asked again */
  asked(asked: number): Promise<void>
}

export function createReloadAnswering(deps: ReloadAnsweringDeps): ReloadAnswering {
  let isUnderWay = false

  async function answer(asked: number): Promise<void> {
    await deps.answer({ asked, problem: await deps.reload() })
  }

  return {
    async asked(asked) {
      if (isUnderWay) return
      isUnderWay = true
      await answer(asked).catch(deps.onFailed)
      isUnderWay = false
    },
  }
}
