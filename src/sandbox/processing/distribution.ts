interface Distribution {
  form: string
  pattern: RegExp
  /** @param numbers NaN for each that the text leaves out @param random two numbers from [0, 1) */
  draw(numbers: readonly number[], random: readonly [number, number]): number
  isValid?(numbers: readonly number[]): boolean
}

function patternOf(parts: string): RegExp {
  return new RegExp(`^${parts.replaceAll('NUMBER', String.raw`(\d+(?:\.\d+)?)`)}$`)
}

const distributions: readonly Distribution[] = [
  {
    form: 'constant:SECONDS[:SPREAD]',
    pattern: patternOf('constant:NUMBER(?::NUMBER)?'),
    isValid: ([, spread = 0]) => !(spread > 1),
    draw: ([seconds = 0, spread = 0], [a]) => seconds * (1 + (spread || 0) * (2 * a - 1)),
  },
  {
    form: 'lognormal:MEDIAN:SIGMA',
    pattern: patternOf('lognormal:NUMBER:NUMBER'),
    draw: ([median = 0, sigma = 0], random) => median * Math.exp(sigma * normal(random)),
  },
  {
    form: 'humps:SHARE:FROM-TO:FROM-TO',
    pattern: patternOf('humps:NUMBER:NUMBER-NUMBER:NUMBER-NUMBER'),
    isValid: ([share = 0, from = 0, to = 0, from2 = 0, to2 = 0]) => share <= 1 && from <= to && from2 <= to2,
    draw: ([share = 0, from = 0, to = 0, from2 = 0, to2 = 0], [a, b]) =>
      a < share ? from + (to - from) * b : from2 + (to2 - from2) * b,
  },
  {
    form: 'exponential:MEAN',
    pattern: patternOf('exponential:NUMBER'),
    draw: ([mean = 0], [a]) => -mean * Math.log(1 - a),
  },
]

export const distributionFormsClause = distributions
  .map(({ form }) => form)
  .join(', ')
  .replace(/, (?=[^,]*$)/, ' or ')

const secondsMax = 86_400

/** Returns seconds, at most a day, for two random numbers from [0, 1). */
type DrawSeconds = (random: readonly [number, number]) => number

export function parseDistribution(text: string): DrawSeconds | undefined {
  for (const { pattern, isValid, draw } of distributions) {
    const [, ...found] = pattern.exec(text) ?? []
    const numbers = found.map(Number)
    if (found.length > 0 && (isValid?.(numbers) ?? true))
      return (random) => Math.min(secondsMax, Math.max(0, draw(numbers, random)))
  }
  return undefined
}

/** Box-Muller transform. */
function normal([a, b]: readonly [number, number]): number {
  return Math.sqrt(-2 * Math.log(1 - a)) * Math.cos(2 * Math.PI * b)
}
