const timeouts = new Set(['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

export function isTimeout(error: unknown): boolean {
  return timeouts.has(codeOf(error))
}

/** What the operator should look at, by the beginning of the error's code. */
const message: readonly [beginning: string, meaning: string][] = [
  ['ECONNREFUSED', 'the connection was refused: is the service running at this address and port?'],
  ['ENOTFOUND', 'the host name is not known: look at the address and at DNS'],
  ['EAI_', 'the host name could not be looked up: look at DNS'],
  ['EHOSTUNREACH', 'no route to the host: look at the network'],
  ['ENETUNREACH', 'no route to the network: look at the network'],
  ['UND_ERR_CONNECT_TIMEOUT', 'no connection came about in time: look at the address, the network, a firewall'],
  ['ETIMEDOUT', 'the network gave up waiting: look at the address, the network, a firewall'],
  ['UND_ERR_INVALID_ARG', 'the request could not be formed'],
  ['HPE_', 'the answer is not HTTP/1.1'],
  ['HTTPParserError', 'the answer is not HTTP/1.1'],
]

const tlsBeginnings = /^(CERT_|ERR_TLS|ERR_SSL|ERR_OSSL|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|HOSTNAME_MISMATCH|EPROTO)/

/**
 * What went wrong on the network, in words. Made from the error's code alone: an error's own message may quote
 * headers, and with them a token.
 */
export function describeFault(error: unknown, sent: boolean): string {
  const code = codeOf(error)
  const meaning =
    message.find(([beginning]) => code.startsWith(beginning))?.[1] ??
    (tlsBeginnings.test(code) ? 'TLS failed: look at the certificates, SERVICE_CA_FILE, SERVICE_CERT_FILE' : null) ??
    (sent ? 'the connection was lost before the whole answer came' : 'the connection was lost before anything was sent')
  return code === '' ? meaning : `${meaning} (${code})`
}

/** The error's code, looked for in its causes too; empty where there is none. */
function codeOf(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') return at.code
    if (at.name === 'HTTPParserError') return at.name
  }
  return ''
}
