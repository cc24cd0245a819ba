import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { AppendOnly } from './appendOnly.ts'
import { Breaker } from './breaker.ts'
import { Budget } from './budget.ts'
import { check, type Finding, type Model, type Size } from './checker.ts'
import { Documents } from './documents.ts'
import { History } from './history.ts'
import { Lifecycle } from './lifecycle.ts'

const models = { Lifecycle, History, Budget, Breaker, Documents, AppendOnly }

export interface Run {
  /** `ok`: the rules hold. `found`: the last word breaks one of them, and the checker must notice. */
  kind: 'ok' | 'found'
  name: string
  isSmall: boolean
  check(): Finding
}

/** One item of runs.yaml. */
interface Item {
  size?: Partial<Size>
  with?: string[]
  break?: string[]
  large?: true
}

export function readRuns(): Run[] {
  const file = parse(readFileSync(new URL('runs.yaml', import.meta.url), 'utf8')) as Record<keyof typeof models, Item[]>
  return (Object.keys(models) as (keyof typeof models)[]).flatMap((model) =>
    file[model].flatMap((item) => toRuns(model, item)),
  )
}

function toRuns(model: keyof typeof models, { size = {}, with: words = [], break: mutations, large }: Item): Run[] {
  const run = (kind: Run['kind'], words: string[]): Run => {
    const sizes = Object.entries(size).map(([what, number]) => `${number} ${what}`)
    const rules = () => new models[model](words, size) as unknown as Model<{ faults: number }>
    return { kind, name: `${model}: ${[...sizes, ...words].join(', ')}`, isSmall: !large, check: () => check(rules()) }
  }
  return mutations?.map((mutation) => run('found', [...words, mutation])) ?? [run('ok', words)]
}
