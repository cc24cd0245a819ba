const timeouts = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'PROXY_TIMEOUT',
  'PROXY_ETIMEDOUT',
])

export function isTimeout(error: unknown): boolean {
  return timeouts.has(errorCodeOf(error))
}

export class HandshakeEnded extends Error {
  override name = 'HandshakeEnded'
  readonly code = 'TLS_HANDSHAKE_ENDED'
  constructor(options?: ErrorOptions) {
    super('the connection was closed within the handshake', options)
  }
}

const theirAuthority = 'if you trust the authority that signed it, put its certificate into the file of SERVICE_CA_FILE'
const ourCertificate = 'check SERVICE_CERT_FILE and SERVICE_KEY_FILE, and ask the operator of the service'

/** The first code that fits wins. */
const meanings: readonly [code: RegExp, meaning: string][] = [
  [/^PROXY_407/, 'the proxy wants a user name and a password, or refused those given: check SERVICE_PROXY'],
  [/^PROXY_(401|403)/, 'the proxy refuses connections to the service: ask its operator to allow the host'],
  [
    /^PROXY_5/,
    'the proxy could not reach the service: check the address of the service, and ask the operator of the proxy',
  ],
  [/^PROXY_TIMEOUT/, 'the proxy did not connect to the service in time: ask its operator'],
  [
    /^PROXY_(CLOSED|HPE|\d)/,
    'the host at SERVICE_PROXY did not connect to the service: is it an HTTP proxy that supports CONNECT?',
  ],
  [/^PROXY_/, 'the proxy cannot be reached: check SERVICE_PROXY, DNS and the network'],
  [/^ECONNREFUSED/, 'the connection was refused: is the service running at this address and port?'],
  [/^ENOTFOUND/, 'the host name is unknown: check the address and DNS'],
  [/^EAI_/, 'the host name could not be looked up: check DNS'],
  [/^EHOSTUNREACH/, 'no route to the host: check the network'],
  [/^ENETUNREACH/, 'no route to the network: check the network'],
  [/^UND_ERR_CONNECT_TIMEOUT/, 'no connection in time: check the address, the network and firewalls'],
  [/^ETIMEDOUT/, 'the connection timed out: check the address, the network and firewalls'],
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
    /^CERT_HAS_EXPIRED/,
    'the service’s certificate has expired: tell its operator, and check the clock of this machine',
  ],
  [/^CERT_NOT_YET_VALID/, 'the service’s certificate is not valid yet: check the clock of this machine'],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID|^HOSTNAME_MISMATCH/,
    'the service’s certificate is for another host: SERVICE_BASE_URL and SERVICE_AUTH_URL must name the host as the certificate does',
  ],
  [/^DEPTH_ZERO_SELF_SIGNED_CERT/, `the service’s certificate is self-signed: ${theirAuthority}`],
  [
    /^(SELF_SIGNED|UNABLE_TO|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED)/,
    `an unknown authority signed the service’s certificate, or the service does not send the intermediate one: ${theirAuthority}`,
  ],
  [/^CERT_REVOKED/, 'the service’s certificate was revoked: tell its operator'],
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
  [/ALERT_CERTIFICATE_EXPIRED/, 'the service says that the client certificate has expired: renew SERVICE_CERT_FILE'],
  [/ALERT_CERTIFICATE_REVOKED/, `the service says that the client certificate was revoked: ${ourCertificate}`],
  [
    /ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED|DECRYPT)/,
    `the service refuses the client certificate: ${ourCertificate} which authority it accepts`,
  ],
  [
    /^TLS_HANDSHAKE_ENDED|ALERT_HANDSHAKE_FAILURE/,
    `the TLS handshake was cut off, by a firewall or by a service that misses or refuses a client certificate: ${ourCertificate} whether it wants one`,
  ],
  [/^(CERT_|ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/, `TLS failed: check SERVICE_CA_FILE; ${ourCertificate}`],
]

/** Uses only the code: an error's message may quote headers, and with them a token. */
export function describeNetworkFault(error: unknown, sent: boolean): string {
  const code = errorCodeOf(error)
  const meaning =
    meanings.find(([pattern]) => pattern.test(code))?.[1] ??
    (sent ? 'the connection was lost before the whole answer came' : 'the connection was lost before anything was sent')
  return code === '' ? meaning : `${meaning} (${code})`
}

function errorCodeOf(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code
    if (at.name === 'HTTPParserError') return at.name
  }
  return ''
}
