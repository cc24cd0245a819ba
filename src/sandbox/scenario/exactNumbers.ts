/** Numbers of scenarios and expectations by their digits: as doubles, two that differ in the twentieth digit would be the same. */

/** Reads JSON; a number that a double cannot hold becomes `JSON.rawJSON`, all others stay numbers. @throws SyntaxError */
export function readExactNumbers(json: string): unknown {
  return JSON.parse(json, (_key, value: unknown, { source }) => {
    if (typeof value !== 'number' || source === undefined) return value
    return canonicalNumber(String(value)) === canonicalNumber(source) ? value : JSON.rawJSON(source)
  })
}

/** A number's digits that count, and its power of ten: the same for `12.50`, `1.25e1` and `125e-1`. */
export function canonicalNumber(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const counting = digits.replace(/0+$/, '')
  if (counting === '') return whole === '' ? number : '0' // what is no number, as Infinity, is itself
  return `${sign}${counting}e${Number(exponent) - fraction.length + digits.length - counting.length}`
}
