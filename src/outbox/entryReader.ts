import type { z } from 'zod'
import {
  isExactNumber,
  isObject,
  nameJsonKind,
  type PayloadObject,
  type PayloadValue,
  toPlainValue,
} from '../yaml/exactJson.ts'
import { explainSchemaIssue } from '../yaml/schemaProblem.ts'
import type { YamlDocument, YamlPath } from '../yaml/yamlDocument.ts'

/** Reads the entries of one document and notes its problems. After a problem the returned value must not be used. */
export class EntryReader {
  readonly #document: YamlDocument
  constructor(document: YamlDocument) {
    this.#document = document
  }

  report(at: YamlPath, message: string): void {
    this.#document.report(at, message)
  }

  reportKey(at: YamlPath, message: string): void {
    this.#document.reportKey(at, message)
  }

  scalar(at: YamlPath, value: PayloadValue | undefined): string | null {
    if (typeof value === 'string') return value
    if (typeof value === 'boolean') return String(value)
    if (value !== undefined && isExactNumber(value)) return value.rawJSON
    this.report(at, `must be a text, a number, true or false, and is ${nameJsonKind(value ?? null)}`)
    return null
  }

  column<T>(at: YamlPath, name: string, value: T): T | null {
    if (name !== '') return value
    this.report(at, `"${at.at(-1)}" is empty`)
    return null
  }

  isMapping(at: YamlPath, value: PayloadValue | undefined, expected: string): value is PayloadObject {
    if (value !== undefined && isObject(value)) return true
    const name = at.at(-1)
    const message =
      value === undefined
        ? `"${name}" is missing: ${expected}`
        : `"${name}" must be ${expected}, and is ${nameJsonKind(value)}`
    this.report(at, message)
    return false
  }

  /**
   * Returns the entry if its schema accepts it, otherwise null.
   *
   * @param more keys of the entry's other forms, to suggest for a misspelt key
   */
  check<T extends z.ZodObject>(
    schema: T,
    at: YamlPath,
    value: PayloadValue,
    more: readonly string[] = [],
  ): z.infer<T> | null {
    const checked = schema.safeParse(toPlainValue(value))
    if (checked.success) return checked.data
    for (const issue of checked.error.issues) {
      for (const { key, path: within, message } of explainSchemaIssue(issue, value, [
        ...Object.keys(schema.shape),
        ...more,
      ])) {
        if (key) this.reportKey([...at, ...within], message)
        else this.report([...at, ...within], message)
      }
    }
    return null
  }
}
