/** Keeps states as texts of one or two characters for each field, so that a million of them fit into memory. */
export class States<S extends object> {
  readonly #fields: string[]
  readonly #values: string[] = []
  readonly #numbers = new Map<string, number>()

  constructor(start: S) {
    this.#fields = Object.keys(start)
  }

  encode(state: S): string {
    let text = ''
    for (const value of Object.values(state)) {
      const json = JSON.stringify(value)
      const number = this.#numbers.get(json) ?? this.#values.push(json) - 1
      this.#numbers.set(json, number)
      text += String.fromCharCode(number & 0xffff, number >> 16)
    }
    return text
  }

  /** Returns a new copy of the state that `encode` was given. */
  decode(text: string): S {
    const state: Record<string, unknown> = {}
    this.#fields.forEach((field, i) => {
      const number = text.charCodeAt(2 * i) + (text.charCodeAt(2 * i + 1) << 16)
      state[field] = JSON.parse(this.#values[number] ?? '')
    })
    return state as S
  }
}

/** A position in a list of fixed length. With a literal as its type, `list[position]` is never undefined. */
export type Index = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7
export type Fixed<T> = T[] & Record<Index, T>

export const upTo = (length: number) => [...Array(length).keys()] as Index[]
export const repeat = <T>(length: number, value: T) => upTo(length).map(() => structuredClone(value)) as Fixed<T>
export const set = <T extends object>(target: T, fields: Partial<T>): T => Object.assign(target, fields)
