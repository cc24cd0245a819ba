import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

export interface PasswordHash {
  salt: Buffer
  tag: Buffer
}

/**
 * OWASP's parameters take 46 MB and 0.1 s per try. A hash with other parameters is refused, because weaker ones make
 * guessing fast.
 */
const parameters = { memory: 47_104, passes: 1, parallelism: 1, tagLength: 32 }
const prefix = '$argon2id$v=19$m=47104,t=1,p=1'
const line = /^\$argon2id\$v=19\$m=47104,t=1,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  return [prefix, base64(salt), base64(await tagOf(password, salt))].join('$')
}

/** @returns null for a text that `hashPassword` did not make */
export function readPasswordHash(text: string): PasswordHash | null {
  const [whole, salt = '', tag = ''] = line.exec(text.trim()) ?? []
  return whole === undefined ? null : { salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

/** Hashes on another thread, and compares in constant time. */
export async function isPasswordCorrect(password: string, { salt, tag }: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await tagOf(password, salt), tag)
}

function tagOf(password: string, nonce: Buffer): Promise<Buffer> {
  const message = Buffer.from(password.normalize('NFC')) // an umlaut may be typed as one character or two
  return derive('argon2id', { ...parameters, message, nonce })
}

const base64 = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
