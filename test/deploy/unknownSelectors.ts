import { systemClock } from '../../src/clock.ts'
import { createMetrics } from '../../src/observe/metrics.ts'

const scrape = await createMetrics({ version: '1', clock: systemClock }).render()

/** The selectors of an expression that match no series of a fresh scrape; each alternative of `a|b` must match. */
export function unknownSelectors(expr: string): string[] {
  return [...expr.matchAll(/\b(outboxd_\w+)(?:\{([^}]*)\})?/g)]
    .filter(([, name = '', matchers = '']) => !isKnown(name, matchers))
    .map(([selector]) => selector)
}

function isKnown(name: string, matchers: string): boolean {
  const series = scrape.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  return series.length > 0 && [...matchers.matchAll(/(\w+)\s*[=!]~?\s*"([^"]*)"/g)].every(hasValues(series))
}

function hasValues(series: readonly string[]) {
  return ([, label, pattern = '']: RegExpExecArray) => {
    const values = series.map((line) => new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1])
    return pattern
      .replaceAll('\\\\', '\\')
      .split('|')
      .every((one) => values.some((value) => value !== undefined && new RegExp(`^(?:${one})$`).test(value)))
  }
}
