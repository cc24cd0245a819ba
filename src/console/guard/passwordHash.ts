import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

export interface PasswordHash {
  memoryKiB: number
  passes: number
  parallelism: number
  salt: Buffer
  tag: Buffer
}

/** OWASP's parameters take 0.1 s per try. */
const usual = { memoryKiB: 47_104, passes: 1, parallelism: 1 }

/** Less makes guessing too fast, more exhausts this host. */
const memoryKiB = { least: 7_168, most: 1_048_576 }
const passesMax = 20
const parallelismMax = 16

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const tag = await tagOf(password, { ...usual, salt, tag: Buffer.alloc(32) })
  const { memoryKiB: m, passes: t, parallelism: p } = usual
  return `$argon2id$v=19$m=${m},t=${t},p=${p}$${base64(salt)}$${base64(tag)}`
}

const phc = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

export function readPasswordHash(text: string): PasswordHash | null {
  const [whole, m, t, p, salt = '', tag = ''] = phc.exec(text.trim()) ?? []
  if (whole === undefined) return null
  const hash = {
    memoryKiB: Number(m),
    passes: Number(t),
    parallelism: Number(p),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
  const isReliable =
    hash.memoryKiB >= memoryKiB.least &&
    hash.memoryKiB <= memoryKiB.most &&
    hash.passes >= 1 &&
    hash.passes <= passesMax &&
    hash.parallelism >= 1 &&
    hash.parallelism <= parallelismMax
  return isReliable ? hash : null
}

/** Compares in constant time, on another thread. */
export async function isPassword(password: string, hash: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await tagOf(password, hash), hash.tag)
}

function tagOf(password: string, hash: PasswordHash): Promise<Buffer> {
  return derive('argon2id', {
    message: Buffer.from(password.normalize('NFC')), // an umlaut is typed in two ways
    nonce: hash.salt,
    parallelism: hash.parallelism,
    tagLength: hash.tag.length,
    memory: hash.memoryKiB,
    passes: hash.passes,
  })
}

const base64 = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
