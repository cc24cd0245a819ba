import { RE2JS } from 're2js'
import { z } from 'zod'

/** A regular expression of a scenario: whoever writes one cannot hold up the process, whatever text it meets. */

const charactersMax = 300

/** Steps of its program: those, times the characters of the text, are what a match takes at most. */
const stepsMax = 500

/**
 * A text that must contain what is like the pattern.
 *
 * RE2 looks at each character of the text once, where JavaScript's own engine may try `^(a+)+$` for years. What cannot be
 * matched so, it does not have: lookahead, lookbehind and backreferences.
 */
export const patternSchema = z
  .strictObject({
    pattern: z
      .string()
      .superRefine((text, context) => {
        const flaw = flawOf(text)
        if (flaw !== undefined) context.addIssue({ code: 'custom', message: flaw })
      })
      .describe(
        'a regular expression (RE2: no lookaround, no backreferences) that the text, or the digits of the number, must contain',
      ),
  })
  .describe('something like this')
export type Pattern = z.infer<typeof patternSchema>

/** Compiled once: a ledger has a million rows to be matched. */
const compiled = new WeakMap<Pattern, RE2JS>()

/** Whether a text contains it, in a time that grows with the text's length alone. */
export function contains(pattern: Pattern, text: string): boolean {
  const known = compiled.get(pattern) ?? compile(pattern.pattern)
  compiled.set(pattern, known)
  return known.test(text)
}

function flawOf(text: string): string | undefined {
  if (text.length > charactersMax) return `must be a regular expression of ${charactersMax} characters at most`
  try {
    if (compile(text).programSize() <= stepsMax) return undefined
    return 'must be a smaller regular expression: its repetitions, written out, are too many'
  } catch (error) {
    const why = (error as Error).message.replace(/^error parsing regexp: /, '')
    return `must be a regular expression without lookahead, lookbehind and backreferences (RE2): ${why}`
  }
}

/** @throws Error saying what RE2 cannot read in it */
function compile(text: string): RE2JS {
  // The translation of JavaScript's own ways to write characters would take this for the letter k.
  if (/(?<!\\)(?:\\\\)*\\k/.test(text)) throw new Error('invalid escape sequence: `\\k`')
  return RE2JS.compile(RE2JS.translateRegExp(text))
}
