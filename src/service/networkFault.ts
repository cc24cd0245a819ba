const timeouts = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'PROXY_TIMEOUT',
  'PROXY_ETIMEDOUT',
])

export function isTimeoutError(error: unknown): boolean {
  return timeouts.has(errorCodeOf(error))
}

/**
 * True if this host, and not the service, is the cause: no file descriptor, port or memory is free, a disk is full, or
 * DNS does not answer for the service's or the proxy's name.
 */
export function isHostError(error: unknown): boolean {
  return /^(PROXY_)?(EMFILE|ENFILE|ENOBUFS|ENOMEM|ENOSPC|EADDRNOTAVAIL|ENOTFOUND|EAI_)/.test(errorCodeOf(error))
}

export class HandshakeEnded extends Error {
  override name = 'HandshakeEnded'
  readonly code = 'TLS_HANDSHAKE_ENDED'
  constructor(options?: ErrorOptions) {
    super('the connection was closed within the handshake', options)
  }
}

const ourCertificate = 'check SERVICE_CERT_FILE and SERVICE_KEY_FILE, and ask the operator of the service'

/** The first pattern that fits the code wins. */
const meanings: readonly [code: RegExp, meaning: string][] = [
  [/^PROXY_407/, 'the proxy wants a user name and a password, or refused the given ones: check SERVICE_PROXY'],
  [/^PROXY_40[13]/, 'the proxy refuses connections to the service: ask its operator to allow the host'],
  [
    /^PROXY_(5|TIMEOUT)/,
    'the proxy could not reach the service in time: check the service’s address, and ask the proxy’s operator',
  ],
  [
    /^PROXY_(CLOSED|HPE|\d)/,
    'the host at SERVICE_PROXY did not connect to the service: is this host an HTTP proxy that supports CONNECT?',
  ],
  [
    /^(PROXY_)?(EMFILE|ENFILE)/,
    'this host has no free file descriptor for a connection: raise its limit (LimitNOFILE, ulimit -n)',
  ],
  [/^(PROXY_)?(ENOBUFS|ENOMEM)/, 'this host has no memory for a connection'],
  [/^(PROXY_)?EADDRNOTAVAIL/, 'this host has no free port or no address for a connection'],
  [/^(PROXY_)?ENOSPC/, 'a disk of this host is full'],
  [/^PROXY_(ENOTFOUND|EAI_)/, 'this host cannot look up the proxy’s name: check SERVICE_PROXY and DNS'],
  [/^PROXY_/, 'the proxy cannot be reached: check SERVICE_PROXY, DNS and the network'],
  [/^ECONNREFUSED/, 'the connection was refused: is the service running at this address and port?'],
  [/^(ENOTFOUND|EAI_)/, 'this host cannot look up the service’s name: check the address and DNS'],
  [
    /^(EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)/,
    'no connection: check the address, the network and firewalls',
  ],
  [/^UND_ERR_INVALID_ARG/, 'the request could not be built'],
  [
    /^(HPE_|HTTPParserError)/,
    'the answer is not HTTP/1.1: is there an HTTP service at this address, and does it speak HTTP/1.1?',
  ],
  [
    /NO_APPLICATION_PROTOCOL/,
    'the service speaks only HTTP/2, and outboxd HTTP/1.1: ask its operator to allow HTTP/1.1, or put a proxy in between',
  ],
  [
    /^CERT_(HAS_EXPIRED|NOT_YET_VALID)/,
    'the service’s certificate is not valid yet or has expired: tell its operator, and check the clock of this machine',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID|^HOSTNAME_MISMATCH/,
    'the service’s certificate is for another host: SERVICE_BASE_URL and SERVICE_AUTH_URL must name the host as the certificate does',
  ],
  [
    /^(DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED|UNABLE_TO|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED)/,
    'an unknown authority signed the service’s certificate, the certificate is self-signed, or its intermediate certificate is missing: if you trust the authority, put its certificate into the file of SERVICE_CA_FILE',
  ],
  [
    /PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/,
    'the service does not speak TLS 1.2 or 1.3, which outboxd requires: ask its operator',
  ],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/,
    'the server does not speak TLS: check the port of the address, and proxies in between',
  ],
  [
    /ALERT_CERTIFICATE_REQUIRED/,
    'the service wants a client certificate, and outboxd has none: set SERVICE_CERT_FILE and SERVICE_KEY_FILE',
  ],
  [
    /ALERT_(CERTIFICATE|UNKNOWN_CA|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED|DECRYPT)/,
    `the service refuses the client certificate, which may have expired: ${ourCertificate} which authority it accepts`,
  ],
  [
    /^TLS_HANDSHAKE_ENDED|ALERT_HANDSHAKE_FAILURE/,
    `the TLS handshake was cut off, by a firewall or by a service that wants a client certificate or refuses ours: ${ourCertificate} whether it wants one`,
  ],
  [/^(CERT_|ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/, `TLS failed: check SERVICE_CA_FILE; ${ourCertificate}`],
]

/** Uses only the code, because an error's message may quote headers, and with them a token. */
export function describeNetworkFault(error: unknown, wasSent: boolean): string {
  const code = errorCodeOf(error)
  const meaning =
    meanings.find(([pattern]) => pattern.test(code))?.[1] ??
    (wasSent
      ? 'the connection was lost before the whole answer came'
      : 'the connection was lost before anything was sent')
  return code === '' ? meaning : `${meaning} (${code})`
}

function errorCodeOf(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code
    if (at.name === 'HTTPParserError') return at.name
  }
  return ''
}
