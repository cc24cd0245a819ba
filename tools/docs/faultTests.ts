import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A test that tries a fault, named "the fault: what becomes of the record". */
export interface FaultTest {
  /** From `test/`. */
  file: string
  name: string
}

/** Stands above a test outside of `test/e2e/faults` that the page lists, too. */
const marker = '// listed in docs/reference/faults.md'
/** The first argument of `test(…)`, `test.each(…)(…)` and the like. */
const testName = /(?:\btest(?:\.\w+)*|^\s*\)|[\w)\]]\))\(\s*(['"`])((?:\\.|(?!\1).)*)\1,/gm
const rowName = /^ +says: (['"`])((?:\\.|(?!\1).)*)\1/gm

/** Every test in `test/e2e/faults`, and those elsewhere that are marked. */
export function faultTests(testFolder: string): FaultTest[] {
  return readdirSync(testFolder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts') && !path.includes('node_modules'))
    .sort()
    .flatMap((file) => {
      const source = readFileSync(join(testFolder, file), 'utf8')
      const names = file.startsWith('e2e/faults/') ? namesIn(source) : markedNamesIn(source)
      return names.map((name) => ({ file, name: withoutParameters(name) }))
    })
}

function namesIn(source: string): string[] {
  return [...source.matchAll(testName)]
    .flatMap(([, , name = '']) => (name === '$says' ? rowsIn(source) : [name]))
    .filter((name) => name.includes(': '))
}

/** Names that the rows of a table give to their tests. */
function rowsIn(source: string): string[] {
  return [...source.matchAll(rowName)].map(([, , name = '']) => name)
}

function markedNamesIn(source: string): string[] {
  return source
    .split(marker)
    .slice(1)
    .flatMap((rest) => namesIn(rest).slice(0, 1))
}

/** A name like `503 or E003 ($name): …` is one row, whatever is put in. */
function withoutParameters(name: string): string {
  return name.replace(/ \((?:[$%][^)]*)\)/, '').replaceAll(/\\(['"`])/g, '$1')
}
