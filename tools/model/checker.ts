/** A promise that a step broke. */
export class Broken extends Error {
  override name = 'Broken'
}

/** How much there is, and how much may happen: it decides how many states a run has. */
const smallest = { rows: 1, records: 3, daemons: 2, inFlight: 1, limit: 2, faults: 0, acts: 0, changes: 0, restores: 1 }
export type Size = typeof smallest

interface Step<S> {
  label: string
  next: S
  isChance: boolean
}

/** The rules of a protocol. Words switch on what a run adds to them, or breaks of them. */
export abstract class Model<S extends { faults: number }> {
  readonly size: Size
  readonly #words: Set<string>
  readonly unusedWords: Set<string>
  /** The state that `steps` is asked about, as JSON, and what `steps` has offered. */
  #from = ''
  offered: Step<S>[] = []

  constructor(words: string[], size: Partial<Size>) {
    this.size = { ...smallest, ...size }
    this.#words = new Set(words)
    this.unusedWords = new Set(words)
  }

  abstract begin(): S
  /** Offers all that can happen next. */
  abstract steps(state: S): void
  /** True if nothing is left to do, or only a person can go on. */
  abstract isEnd(state: S): boolean
  /** Drops what can matter no longer, and sorts what has no order, so that equal states are one. */
  tidy(_state: S): void {}

  is(word: string): boolean {
    this.unusedWords.delete(word)
    return this.#words.has(word)
  }

  offerFrom(text: string): void {
    this.#from = text
    this.offered = []
    this.steps(JSON.parse(text))
  }

  /** Returns a copy of the state. What the caller makes of the copy is one of the next states. */
  step(label: string, isChance = false): S {
    const next = JSON.parse(this.#from) as S
    this.offered.push({ label, next, isChance })
    return next
  }

  /** What may happen or not: an end must be reachable without it. */
  chance(label: string): S {
    return this.step(label, true)
  }

  /** A chance that uses up one of the state's `faults`. The caller has asked whether one is left. */
  fault(label: string): S {
    const next = this.chance(`! ${label}`)
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
export function check<S extends { faults: number }>(model: Model<S>): Finding {
  const texts = [JSON.stringify(model.begin())]
  const numbers = new Map(texts.map((text) => [text, 0]))
  const origins = [{ parent: -1, label: '' }]
  /** The states that can follow each state without a chance. */
  const targets: number[][] = []

  for (const [current, text] of texts.entries()) {
    try {
      model.offerFrom(text)
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      return finding(error.message, [...traceTo(current), model.offered.at(-1)?.label ?? ''])
    }
    targets[current] = []
    for (const { next, label, isChance } of model.offered) {
      model.tidy(next)
      const nextText = JSON.stringify(next)
      const number = numbers.get(nextText) ?? texts.push(nextText) - 1
      if (!isChance) targets[current].push(number)
      if (number < numbers.size) continue
      numbers.set(nextText, number)
      origins.push({ parent: current, label })
    }
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
    const canEnd = texts.map((text) => model.isEnd(JSON.parse(text)))
    for (let hasChanged = true; hasChanged; ) {
      hasChanged = false
      for (let i = texts.length - 1; i >= 0; i--)
        if (!canEnd[i] && targets[i]?.some((target) => canEnd[target])) hasChanged = canEnd[i] = true
    }
    return canEnd.indexOf(false)
  }
}

/** A position in a list of fixed length. With a literal as its type, `list[position]` is never undefined. */
export type Index = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7
export type Fixed<T> = T[] & Record<Index, T>

export const upTo = (length: number) => [...Array(length).keys()] as Index[]
export const repeat = <T>(length: number, value: T) => upTo(length).map(() => structuredClone(value)) as Fixed<T>
export const set = <T extends object>(target: T, fields: Partial<T>): T => Object.assign(target, fields)
