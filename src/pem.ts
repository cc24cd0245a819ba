import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

/** @throws Error if one cannot be read */
function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

export function earliestExpiryMs(pem: string | null): number | null {
  const ends = readOr(() => certificatesIn(pem ?? ''), []).map(({ validToDate }) => validToDate.getTime())
  return ends.length > 0 ? Math.min(...ends) : null
}

export function isCertificateValidAt(pem: string, nowMs: number): boolean {
  const [shown] = readOr(() => certificatesIn(pem), [])
  return shown !== undefined && shown.validFromDate.getTime() <= nowMs && nowMs < shown.validToDate.getTime()
}

/** Says why a file of authorities cannot be used, as the end of a sentence. */
export function authorityFileProblem(ca: string): string | null {
  const certificates = readOr(() => certificatesIn(ca), null)
  return certificates === null || certificates.length === 0 ? 'holds no certificate that can be read (PEM)' : null
}

/** Says why a client certificate cannot be used with its key, in a sentence that names the variable. */
export function certificateKeyProblem(cert: string, key: string): string | null {
  const [shown] = readOr(() => certificatesIn(cert), [])
  if (shown === undefined) return 'SERVICE_CERT_FILE holds no certificate that can be read (PEM)'
  const privateKey = readKey(key)
  if (typeof privateKey === 'string') return `SERVICE_KEY_FILE ${privateKey}`
  if (!shown.checkPrivateKey(privateKey))
    return 'SERVICE_KEY_FILE is not the key of the first certificate in SERVICE_CERT_FILE'
  return contextProblem(cert, key)
}

function readKey(key: string): KeyObject | string {
  try {
    return createPrivateKey(key)
  } catch {
    return key.includes('ENCRYPTED')
      ? 'is encrypted, and the daemon cannot ask for its passphrase: store it decrypted (openssl pkey), readable by the daemon only'
      : 'holds no key that can be read (PEM)'
  }
}

/** Finds what only OpenSSL refuses, such as a key that is too short. */
function contextProblem(cert: string, key: string): string | null {
  try {
    createSecureContext({ cert, key })
    return null
  } catch (error) {
    return `SERVICE_CERT_FILE cannot be used with its key (${(error as NodeJS.ErrnoException).code ?? 'no code'})`
  }
}

function readOr<T, E>(read: () => T, otherwise: E): T | E {
  try {
    return read()
  } catch {
    return otherwise
  }
}
