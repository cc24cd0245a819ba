import { States } from './state.ts'

/** A promise that a step broke. */
export class Broken extends Error {
  override name = 'Broken'
}

/** How much there is, and how much may happen: it decides how many states a run has. */
export type Size = Record<string, number>

/** The rules of a protocol. Words switch on what a run adds to them, or breaks of them. */
export abstract class Model<S extends { faults: number }> {
  abstract readonly start: S
  readonly #words: Set<string>
  readonly unusedWords: Set<string>
  /** Set by the checker: returns a copy of the state. What the caller makes of the copy is one of the next states. */
  offer: (label: string, isChance: boolean) => S = () => this.start

  constructor(words: string[]) {
    this.#words = new Set(words)
    this.unusedWords = new Set(words)
  }

  /** Offers all that can happen next. */
  abstract steps(state: S): void
  /** True if nothing is left to do, or only a person can go on. */
  abstract isEnd(state: S): boolean

  is(word: string): boolean {
    return this.#words.has(word) && (this.unusedWords.delete(word) || true)
  }

  step(label: string): S {
    return this.offer(label, false)
  }

  /** What may happen or not: an end must be reachable without it. */
  chance(label: string): S {
    return this.offer(label, true)
  }

  /** A chance that uses up one of the state's `faults`. The caller has asked whether one is left. */
  fault(label: string): S {
    const next = this.offer(`! ${label}`, true)
    next.faults--
    return next
  }
}

export interface Finding {
  states: number
  /** The promise that does not hold, or null. */
  broken: string | null
  /** The steps of the shortest way there. */
  trace: string[]
}

/**
 * Visits every state that the model can reach, breadth first, so that the first broken promise has the shortest trace. Then
 * checks that from each state an end can be reached without chances.
 */
export function check<S extends { faults: number }>(model: Model<S>, progress: (states: number) => void): Finding {
  const states = new States(model.start)
  const texts = [states.encode(model.start)]
  const numbers = new Map(texts.map((text) => [text, 0]))
  const origins = [{ parent: -1, label: '' }]
  /** The states that can follow each state without a chance. */
  const targets: number[][] = []
  let progressMs = performance.now()

  for (const [current, text] of texts.entries()) {
    const offered: { next: S; label: string; isChance: boolean }[] = []
    model.offer = (label, isChance) => {
      const next = states.decode(text)
      offered.push({ next, label, isChance })
      return next
    }
    try {
      model.steps(states.decode(text))
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      return finding(error.message, [...traceTo(current), offered.at(-1)?.label ?? ''])
    }
    targets[current] = []
    for (const { next, label, isChance } of offered) {
      const nextText = states.encode(next)
      const number = numbers.get(nextText) ?? texts.push(nextText) - 1
      if (!isChance) targets[current].push(number)
      if (number < numbers.size) continue
      numbers.set(nextText, number)
      origins.push({ parent: current, label })
    }
    if (performance.now() - progressMs < 2_000) continue
    progressMs = performance.now()
    progress(texts.length)
  }
  if (model.unusedWords.size > 0) throw new Error(`no rule asks for: ${[...model.unusedWords].join(', ')}`)
  const stuck = findStuck()
  return stuck < 0 ? finding(null, []) : finding('stuck: no end can be reached', traceTo(stuck))

  function finding(broken: string | null, trace: string[]): Finding {
    return { states: texts.length, broken, trace }
  }

  function traceTo(last: number): string[] {
    const trace: string[] = []
    for (let at = origins[last]; at && at.parent >= 0; at = origins[at.parent]) trace.unshift(at.label)
    return trace
  }

  /** Returns the first state from which no end can be reached, or -1. Most steps lead to a later state: few rounds do. */
  function findStuck(): number {
    const canEnd = texts.map((text) => model.isEnd(states.decode(text)))
    for (let hasChanged = true; hasChanged; ) {
      hasChanged = false
      for (let i = texts.length - 1; i >= 0; i--)
        if (!canEnd[i] && targets[i]?.some((target) => canEnd[target])) hasChanged = canEnd[i] = true
    }
    return canEnd.indexOf(false)
  }
}
