import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A test of a fault. Its name is "the fault: the outcome". */
export interface FaultTest {
  /** The file, relative to `test/e2e/faults/`. */
  file: string
  fault: string
  /** What becomes of the record. */
  outcome: string
}

/** The first argument of `test(…)`, `test.each(…)(…)` and the like. */
const testName = /(?:\btest(?:\.\w+)*|^\s*\)|[\w)\]]\))\(\s*(['"`])((?:\\.|(?!\1).)*)\1,/gm
/** Splits at the first colon that is not between backticks. */
const faultAndOutcome = /^((?:`[^`]*`|[^`])+?): (.*)$/
const rowName = /^ +says: (['"`])((?:\\.|(?!\1).)*)\1/gm

export function faultTests(folder: string): FaultTest[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.test.ts'))
    .sort()
    .flatMap((file) =>
      namesIn(readFileSync(join(folder, file), 'utf8')).flatMap((name) => {
        const [, fault, outcome] = faultAndOutcome.exec(withoutParameters(name)) ?? []
        return fault === undefined || outcome === undefined ? [] : [{ file, fault, outcome }]
      }),
    )
}

function namesIn(source: string): string[] {
  return [...source.matchAll(testName)].flatMap(([, , name = '']) => (name === '$says' ? rowsIn(source) : [name]))
}

/** Returns the names that the rows of a table give to their tests. */
function rowsIn(source: string): string[] {
  return [...source.matchAll(rowName)].map(([, , name = '']) => name)
}

/** A name like `503 or E003 ($name): …` is one row for all its values. */
function withoutParameters(name: string): string {
  return name.replace(/ \((?:[$%][^)]*)\)/, '').replaceAll(/\\(['"`])/g, '$1')
}
