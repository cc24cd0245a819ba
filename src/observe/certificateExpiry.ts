import { X509Certificate } from 'node:crypto'

/**
 * When the first of a PEM file's certificates is no longer valid, epoch milliseconds; null where there is none that can be
 * read, which whoever uses it says.
 */
export function earliestExpiryMs(pem: string | null): number | null {
  const blocks = pem?.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const ends = blocks.map(expiryMs).filter((ms) => ms !== null)
  return ends.length > 0 ? Math.min(...ends) : null
}

function expiryMs(block: string): number | null {
  try {
    return new X509Certificate(block).validToDate.getTime()
  } catch {
    return null
  }
}
