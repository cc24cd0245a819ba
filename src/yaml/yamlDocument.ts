import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument, type Scalar } from 'yaml'
import type { PayloadValue } from './exactJson.ts'
import { type FillInPlace, findFillInPlaces } from './yamlLines.ts'

const fileCharactersMax = 1_000_000
const depthMax = 100
const yamlErrorsMax = 10

export type YamlPath = readonly (string | number)[]

/**
 * A YAML file: its values, their positions, and the problems found so far. Numbers keep their own digits. What JSON
 * does not have (anchors, tags, .nan) is a problem.
 */
export class YamlDocument {
  readonly problems: FileProblem[] = []
  /** Undefined if the file is not YAML. A part that cannot be read is null here, and is one of `problems`. */
  readonly content: PayloadValue | undefined
  readonly file: string
  readonly #lines = new LineCounter()
  /** Offsets of refused values, so that a missing value there is not a second problem. */
  readonly #refused = new Set<number>()
  readonly #offsets = new Map<string, { value: number; key: number }>()
  /** What the user must fill in after `outboxd describe`. */
  readonly #toFillIn: readonly FillInPlace[]

  constructor(file: string, text: string) {
    this.file = file
    this.#toFillIn = findFillInPlaces(text)
    this.content = this.#read(text)
    for (const { line, column, what } of this.#toFillIn)
      this.problems.push({ file, line, column, message: `FILL IN is still there: ${what}` })
  }

  /** Notes a problem with the value at `path`, or with the nearest existing value around `path`. */
  report(path: YamlPath, message: string): void {
    const offset = this.#offsetOf(path, 'value')
    if (!this.#refused.has(offset)) this.#reportAt(offset, message)
  }

  reportKey(path: YamlPath, message: string): void {
    this.#reportAt(this.#offsetOf(path, 'key'), message)
  }

  problemAt(path: YamlPath, message: string): FileProblem {
    return this.#problem(this.#offsetOf(path, 'value'), message)
  }

  #offsetOf(path: YamlPath, of: 'key' | 'value'): number {
    const exact = this.#offsets.get(JSON.stringify(path))
    if (exact !== undefined) return exact[of]
    return path.length === 0 ? 0 : this.#offsetOf(path.slice(0, -1), 'key')
  }

  #reportAt(offset: number, message: string): void {
    const problem = this.#problem(offset, message)
    if (!this.#toFillIn.some(({ line }) => line === problem.line)) this.problems.push(problem)
  }

  #problem(offset: number, message: string): FileProblem {
    const { line, col } = this.#lines.linePos(offset)
    return { file: this.file, line: Math.max(line, 1), column: Math.max(col, 1), message }
  }

  #read(text: string): PayloadValue | undefined {
    if (text.length > fileCharactersMax) {
      this.#reportAt(0, `the file is longer than ${fileCharactersMax} characters`)
      return undefined
    }
    const document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false })
    // Report only the first errors, because one missing bracket can cause hundreds.
    for (const flaw of [...document.errors, ...document.warnings].slice(0, yamlErrorsMax)) {
      this.#reportAt(flaw.pos[0], explainYaml(flaw))
    }
    if (document.contents === null && this.problems.length === 0) this.#reportAt(0, 'the file is empty')
    return this.problems.length > 0 ? undefined : this.#value(document.contents, [])
  }

  #value(node: Node | null, path: YamlPath): PayloadValue {
    if (node === null) return null
    const start = node.range?.[0] ?? 0
    this.#offsets.set(JSON.stringify(path), { key: start, ...this.#offsets.get(JSON.stringify(path)), value: start })
    if (path.length > depthMax) return this.#refuse(start, `nested deeper than ${depthMax} levels`)
    if (isAlias(node) || node.anchor !== undefined) {
      return this.#refuse(
        start,
        'anchors and aliases (&name, *name) are not read here: write the value out, or quote it',
      )
    }
    if (node.tag !== undefined)
      return this.#refuse(start, `the tag ${node.tag} is not read here: leave it out, or quote it`)
    if (isSeq(node)) return node.items.map((item, i) => this.#value(item as Node | null, [...path, i]))
    if (isMap(node)) return this.#object(node.items as Pair<Node, Node | null>[], path)
    return isScalar(node) ? this.#scalar(node, start) : null
  }

  #object(pairs: readonly Pair<Node, Node | null>[], path: YamlPath): PayloadValue {
    const object: Record<string, PayloadValue> = {}
    for (const { key, value } of pairs) {
      const start = key?.range?.[0] ?? 0
      const name = keyText(key)
      if (name === null) this.#refuse(start, 'a key must be plain text')
      else if (name === '__proto__') this.#refuse(start, '"__proto__" cannot be a key')
      else if (Object.hasOwn(object, name)) this.#refuse(start, `"${name}" is given twice`)
      else {
        const at = [...path, name]
        this.#offsets.set(JSON.stringify(at), { key: start, value: start })
        object[name] = this.#value(value, at)
      }
    }
    return object
  }

  #scalar(node: Scalar, start: number): PayloadValue {
    const { value, source = '' } = node
    if (typeof value === 'number') {
      if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(source)) return JSON.rawJSON(source)
      return this.#refuse(
        start,
        `${source} is not a number as JSON writes it: write digits, or quote it to make it text`,
      )
    }
    return typeof value === 'boolean' || value === null ? value : String(value)
  }

  #refuse(offset: number, message: string): null {
    this.#refused.add(offset)
    this.#reportAt(offset, message)
    return null
  }
}

/** Returns a key's text as in the file, so that 1.0 and 1 stay two keys. Null if the key is not a plain scalar. */
function keyText(key: Node | null): string | null {
  if (!isScalar(key) || key.anchor !== undefined || key.tag !== undefined) return null
  return typeof key.value === 'string' ? key.value : (key.source ?? '')
}

function explainYaml(flaw: { code: string; message: string }): string {
  if (flaw.code === 'DUPLICATE_KEY') return 'this key is given twice'
  if (flaw.code === 'MULTIPLE_DOCS') return 'one document per file: a second one begins after ---'
  if (flaw.code === 'RESOURCE_EXHAUSTION') return 'nested too deeply to read'
  return `not readable as YAML: ${flaw.message.split('\n', 1)[0]}`
}

/** A problem of a file. Lines and columns count from 1; 0 stands for the whole file. */
export interface FileProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
}

/** Thrown with every problem of every file at once, so that you can fix them all together. */
export class FilesInvalid extends Error {
  override name = 'FilesInvalid'
  /** Never empty; sorted by file, line, column. */
  readonly problems: readonly FileProblem[]
  constructor(problems: readonly FileProblem[]) {
    super(problems.map((problem) => `${placeOf(problem)} ${problem.message}`).join('\n'))
    this.problems = problems
  }
}

export const wholeFile = { line: 0, column: 0 }

const placeOf = ({ file, line, column }: FileProblem) => (line === 0 ? `${file}:` : `${file}:${line}:${column}`)
