import fc from 'fast-check'

const surrogatesFrom = 0xd800
const surrogates = 0x800

/** Texts of any characters. fast-check's own `unit: 'binary'` works for four seconds before its first text. */
export function anyString(lengths: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  const unit = fc.nat(0x10ffff - surrogates).map((n) => String.fromCodePoint(n < surrogatesFrom ? n : n + surrogates))
  return fc.string({ unit, ...lengths })
}
