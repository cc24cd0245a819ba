import { z } from 'zod'

/** Returns the words that a setting may have, the default first; empty if it is not a choice among words. */
export function settingChoices(setting: z.ZodType): readonly string[] {
  const inner = setting instanceof z.ZodDefault ? setting.unwrap() : setting
  return inner instanceof z.ZodEnum ? (inner.options as string[]) : []
}
