import type { z } from 'zod'
import { isObject, nameJsonKind, type PayloadValue, toPlainValue } from '../yaml/exactJson.ts'
import { explainSchemaIssue } from '../yaml/schemaProblem.ts'
import type { YamlDocument, YamlPath } from '../yaml/yamlDocument.ts'

/** An entry of `outbox.yaml` that has one or more forms. A form is recognised by its first key. */
export interface OutboxFileEntry<Form extends z.ZodObject> {
  readonly forms: readonly Form[]
  /** The form for a plain text (the value of its first key), and for a mapping without a known key. */
  readonly defaultForm: Form | null
  /** What the entry may be, for messages. */
  readonly expected: string
}

const firstKeyOf = (form: z.ZodObject): string => Object.keys(form.shape)[0] ?? ''

/** Checks an entry by the form that it has, so that problems are about this form only. Null if there are problems. */
export function readEntry<Form extends z.ZodObject>(
  document: YamlDocument,
  entryPath: YamlPath,
  given: PayloadValue | undefined,
  { forms, defaultForm, expected }: OutboxFileEntry<Form>,
): z.infer<Form> | null {
  const value = typeof given === 'string' && defaultForm !== null ? { [firstKeyOf(defaultForm)]: given } : given
  const name = entryPath.at(-1)
  if (value === undefined || !isObject(value)) {
    const message =
      value === undefined ? `is missing: ${expected}` : `must be ${expected}, and is ${nameJsonKind(value)}`
    document.report(entryPath, `"${name}" ${message}`)
    return null
  }
  const form = forms.find((each) => Object.hasOwn(value, firstKeyOf(each))) ?? defaultForm
  if (form !== null) return checkSchema(document, form, entryPath, value, forms.map(firstKeyOf))
  document.report(entryPath, `"${name}" must be ${expected}`)
  return null
}

/** @param otherKeys keys of the entry's other forms, to suggest for a misspelt key */
export function checkSchema<Form extends z.ZodObject>(
  document: YamlDocument,
  schema: Form,
  at: YamlPath,
  value: PayloadValue,
  otherKeys: readonly string[] = [],
): z.infer<Form> | null {
  const checked = schema.safeParse(toPlainValue(value))
  if (checked.success) return checked.data
  const keys = [...new Set([...Object.keys(schema.shape), ...otherKeys])]
  for (const issue of checked.error.issues) {
    for (const { isAboutKey, path: within, message } of explainSchemaIssue(issue, value, keys)) {
      if (isAboutKey) document.reportKey([...at, ...within], message)
      else document.report([...at, ...within], message)
    }
  }
  return null
}
