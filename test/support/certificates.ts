import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate with its key, both PEM. */
export interface Identity {
  cert: string
  key: string
}

export interface CertificateOptions {
  name: string
  /** Host names and IPv4 addresses of a server. */
  hosts?: readonly string[]
  fromMs?: number
  untilMs?: number
}

export interface Authority extends Identity {
  issue(options: CertificateOptions): Identity
}

const dayMs = 86_400_000

/** Makes a certificate authority for a test: X.509 by RFC 5280, which node:crypto can read but not write. */
export function createAuthority(name: string): Authority {
  const own = keyPair()
  const issuer = { name, key: own.privateKey }
  return {
    cert: certificate({ name, isAuthority: true }, own.publicKey, issuer),
    key: pemKey(own.privateKey),
    issue(options) {
      const { publicKey, privateKey } = keyPair()
      return { cert: certificate(options, publicKey, issuer), key: pemKey(privateKey) }
    },
  }
}

/** Makes a self-signed certificate. */
export function selfSigned(options: CertificateOptions): Identity {
  const { publicKey, privateKey } = keyPair()
  return {
    cert: certificate(options, publicKey, { name: options.name, key: privateKey }),
    key: pemKey(privateKey),
  }
}

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pemKey = (key: KeyObject) => String(key.export({ type: 'pkcs8', format: 'pem' }))

function certificate(
  {
    name,
    hosts = [],
    fromMs = Date.now() - dayMs,
    untilMs = Date.now() + 365 * dayMs,
    isAuthority = false,
  }: CertificateOptions & { isAuthority?: boolean },
  key: KeyObject,
  issuer: { name: string; key: KeyObject },
): string {
  const algorithm = sequence(oid('1.2.840.10045.4.3.2')) // ecdsa-with-SHA256
  const extensions = [
    ...(isAuthority ? [sequence(oid('2.5.29.19'), boolean(true), octets(sequence(boolean(true))))] : []),
    ...(hosts.length > 0 ? [sequence(oid('2.5.29.17'), octets(sequence(...hosts.map(alternativeName))))] : []),
  ]
  const toSign = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    nameOf(issuer.name),
    sequence(time(fromMs), time(untilMs)),
    nameOf(name),
    createPublicKey(key.export({ type: 'spki', format: 'pem' })).export({ type: 'spki', format: 'der' }),
    ...(extensions.length > 0 ? [tagged(0xa3, sequence(...extensions))] : []),
  )
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', toSign, issuer.key)])
  const lines =
    sequence(toSign, algorithm, tagged(0x03, signature))
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** DER (ITU-T X.690): a tag, a length, the contents. */
function tagged(tag: number, contents: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, ...sizeBytes(contents.length)]), contents])
}

function sizeBytes(length: number): number[] {
  if (length < 128) return [length]
  return length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
}

const sequence = (...parts: Buffer[]) => tagged(0x30, Buffer.concat(parts))
const octets = (contents: Buffer) => tagged(0x04, contents)
const boolean = (is: boolean) => tagged(0x01, Buffer.from([is ? 0xff : 0]))
const nameOf = (name: string) => sequence(tagged(0x31, sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from(name)))))

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number)
  return tagged(0x06, Buffer.from([first * 40 + second, ...others.flatMap(base128)]))
}

function base128(number: number): number[] {
  const digits = [number & 127]
  for (let rest = number >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 127) | 128)
  return digits
}

/** GeneralizedTime, for every year. */
const time = (ms: number) =>
  tagged(0x18, Buffer.from(`${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`))

function alternativeName(host: string): Buffer {
  return isIP(host) === 4 ? tagged(0x87, Buffer.from(host.split('.').map(Number))) : tagged(0x82, Buffer.from(host))
}
