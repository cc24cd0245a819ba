/** Notices that permits run out before their requests can leave, again and again. */
export interface StarvationWatch {
  /** @param left whether a request left with its permit */
  saw(left: boolean): void
}

/** So many in a row are no accident. */
const lapsedMost = 5

/** Calls back when it begins, and when a request leaves after it; so does the first one, for whoever ran here before. */
export function watchStarvation(on: { began(): void; ended(): void }): StarvationWatch {
  let lapsed = 0
  let isOver = false
  return {
    saw(left) {
      lapsed = left ? 0 : lapsed + 1
      if (left && !isOver) on.ended()
      if (lapsed === lapsedMost) on.began()
      isOver = left || (isOver && lapsed < lapsedMost)
    },
  }
}
