const timeouts = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'PROXY_TIMEOUT',
  'PROXY_ETIMEDOUT',
])

export function isTimeout(error: unknown): boolean {
  return timeouts.has(codeOf(error))
}

export class HandshakeEnded extends Error {
  override name = 'HandshakeEnded'
  readonly code = 'TLS_HANDSHAKE_ENDED'
  constructor(options?: ErrorOptions) {
    super('the connection was closed within the handshake', options)
  }
}

const theirAuthority =
  'if you trust the authority that has signed it, put that authority’s certificate into the file of SERVICE_CA_FILE'
const ourCertificate = 'look at SERVICE_CERT_FILE and SERVICE_KEY_FILE, and ask the operator of the service'

/** What the operator should look at: the first code that fits. */
const meanings: readonly [code: RegExp, meaning: string][] = [
  [
    /^PROXY_407/,
    'the proxy wants a user name and a password, or does not know those that it was given: look at SERVICE_PROXY',
  ],
  [/^PROXY_(401|403)/, 'the proxy does not let us through to the service: ask its operator to allow the host'],
  [
    /^PROXY_5/,
    'the proxy could not reach the service: look at the address of the service, and ask the operator of the proxy',
  ],
  [/^PROXY_TIMEOUT/, 'the proxy opened no way to the service in time: ask its operator'],
  [
    /^PROXY_(CLOSED|HPE|\d)/,
    'what answers at SERVICE_PROXY opened no way to the service: is it an HTTP proxy that knows CONNECT?',
  ],
  [/^PROXY_/, 'the proxy cannot be reached: look at SERVICE_PROXY, DNS, the network'],
  [/^ECONNREFUSED/, 'the connection was refused: is the service running at this address and port?'],
  [/^ENOTFOUND/, 'the host name is not known: look at the address and at DNS'],
  [/^EAI_/, 'the host name could not be looked up: look at DNS'],
  [/^EHOSTUNREACH/, 'no route to the host: look at the network'],
  [/^ENETUNREACH/, 'no route to the network: look at the network'],
  [/^UND_ERR_CONNECT_TIMEOUT/, 'no connection came about in time: look at the address, the network, a firewall'],
  [/^ETIMEDOUT/, 'the network gave up waiting: look at the address, the network, a firewall'],
  [/^UND_ERR_INVALID_ARG/, 'the request could not be formed'],
  [
    /^(HPE_|HTTPParserError)/,
    'the answer is not HTTP/1.1: is there an HTTP service at this address, and one that speaks more than HTTP/2?',
  ],
  [
    /NO_APPLICATION_PROTOCOL/,
    'the service speaks only HTTP/2, and outboxd speaks HTTP/1.1: ask its operator to allow HTTP/1.1, or put a proxy in between',
  ],
  [
    /^CERT_HAS_EXPIRED/,
    'the certificate that the service shows has expired: tell its operator, and look whether the clock of this machine is right',
  ],
  [
    /^CERT_NOT_YET_VALID/,
    'the certificate that the service shows is not valid yet: look whether the clock of this machine is right',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID|^HOSTNAME_MISMATCH/,
    'the certificate that the service shows is for another host: look at SERVICE_BASE_URL and SERVICE_AUTH_URL, which must name the host as the certificate does',
  ],
  [/^DEPTH_ZERO_SELF_SIGNED_CERT/, `the service shows a certificate that it has signed itself: ${theirAuthority}`],
  [
    /^(SELF_SIGNED|UNABLE_TO|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED)/,
    `an unknown authority has signed the service’s certificate: ${theirAuthority}; or the service does not send the certificate in between`,
  ],
  [/^CERT_REVOKED/, 'the certificate that the service shows was revoked: tell its operator'],
  [
    /PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/,
    'the service speaks only TLS below 1.2, and outboxd does not: ask its operator for TLS 1.2 or 1.3',
  ],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/,
    'what answers there does not speak TLS: look at the port of the address, and at what stands in between',
  ],
  [
    /ALERT_CERTIFICATE_REQUIRED/,
    'the service wants a client certificate, and we have shown none: set SERVICE_CERT_FILE and SERVICE_KEY_FILE',
  ],
  [/ALERT_CERTIFICATE_EXPIRED/, 'the service says that our client certificate has expired: renew SERVICE_CERT_FILE'],
  [/ALERT_CERTIFICATE_REVOKED/, `the service says that our client certificate was revoked: ${ourCertificate}`],
  [
    /ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED|DECRYPT)/,
    `the service refuses our client certificate: ${ourCertificate} which authority it accepts`,
  ],
  [
    /^TLS_HANDSHAKE_ENDED|ALERT_HANDSHAKE_FAILURE/,
    `the TLS handshake was cut off, as by a service that misses a client certificate or refuses ours, or by a firewall: ${ourCertificate} whether it wants one`,
  ],
  [/^(CERT_|ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO)/, `TLS failed: look at SERVICE_CA_FILE; ${ourCertificate}`],
]

/** Made from the code only, because an error's message may quote headers, and with them a token. */
export function describeFault(error: unknown, sent: boolean): string {
  const code = codeOf(error)
  const meaning =
    meanings.find(([pattern]) => pattern.test(code))?.[1] ??
    (sent ? 'the connection was lost before the whole answer came' : 'the connection was lost before anything was sent')
  return code === '' ? meaning : `${meaning} (${code})`
}

function codeOf(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code
    if (at.name === 'HTTPParserError') return at.name
  }
  return ''
}
