import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

/** Returns an empty array if one certificate cannot be read. */
function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  try {
    return blocks.map((block) => new X509Certificate(block))
  } catch {
    return []
  }
}

export function findEarliestExpiryEpochMs(pem: string | null): number | null {
  const ends = certificatesIn(pem ?? '').map(({ validToDate }) => validToDate.getTime())
  return ends.length > 0 ? Math.min(...ends) : null
}

/** The text continues a sentence that begins with SERVICE_CA_FILE. */
export const findAuthorityFileProblemSuffix = (ca: string): string | null =>
  certificatesIn(ca).length === 0 ? 'holds no certificate that can be read (PEM)' : null

export function findCertificateKeyProblem(cert: string, key: string): string | null {
  const why =
    certificatesIn(cert).length === 0 || key === '' ? 'a file is empty or cannot be read' : contextProblem(cert, key)
  if (why === null) return null
  return `SERVICE_CERT_FILE cannot be used with SERVICE_KEY_FILE (${why}). Both must be PEM. The key must be unencrypted (\`openssl pkey\`) and belong to the first certificate`
}

function contextProblem(cert: string, key: string): string | null {
  try {
    createSecureContext({ cert, key })
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'no code'
  }
}
