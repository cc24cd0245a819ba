import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A test of a fault. Its name is "the fault: what becomes of the record". */
export interface FaultTest {
  /** The file, relative to `test/e2e/faults/`. */
  file: string
  name: string
}

/** The first argument of `test(…)`, `test.each(…)(…)` and the like. */
const testName = /(?:\btest(?:\.\w+)*|^\s*\)|[\w)\]]\))\(\s*(['"`])((?:\\.|(?!\1).)*)\1,/gm
const rowName = /^ +says: (['"`])((?:\\.|(?!\1).)*)\1/gm

export function faultTests(folder: string): FaultTest[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.test.ts'))
    .sort()
    .flatMap((file) =>
      namesIn(readFileSync(join(folder, file), 'utf8')).map((name) => ({ file, name: withoutParameters(name) })),
    )
}

function namesIn(source: string): string[] {
  return [...source.matchAll(testName)]
    .flatMap(([, , name = '']) => (name === '$says' ? rowsIn(source) : [name]))
    .filter((name) => name.includes(': '))
}

/** Returns the names that the rows of a table give to their tests. */
function rowsIn(source: string): string[] {
  return [...source.matchAll(rowName)].map(([, , name = '']) => name)
}

/** A name like `503 or E003 ($name): …` is one row for all its values. */
function withoutParameters(name: string): string {
  return name.replace(/ \((?:[$%][^)]*)\)/, '').replaceAll(/\\(['"`])/g, '$1')
}
