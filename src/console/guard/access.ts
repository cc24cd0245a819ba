import { compile } from '@fastify/proxy-addr'
import type { ConsoleConfig } from '../../config.ts'
import { type PasswordHash, readPasswordHash } from './passwordHash.ts'
import { isLoopback } from './refuseForeign.ts'

export type SignInMethod =
  | { kind: 'open' }
  | { kind: 'password'; hash: PasswordHash }
  | { kind: 'proxy'; header: string }

export interface ConsoleAccess {
  access: SignInMethod
  isProxy: (address: string) => boolean
  names: readonly string[]
}

export function readConsoleAccess(
  host: string,
  config: Omit<ConsoleConfig, 'colour'>,
): ConsoleAccess | { problems: string[] } {
  const { password, trustHeader, trustProxy } = config
  const hash = password === null ? null : readPasswordHash(password)
  const problems: string[] = []
  if (password !== null && hash === null)
    problems.push(
      'CONSOLE_PASSWORD_FILE: the file does not hold a line of `outboxd console --hash-password` (argon2id): make it again with that command',
    )
  if (password !== null && trustHeader !== null)
    problems.push(
      'CONSOLE_PASSWORD_FILE and CONSOLE_TRUST_HEADER are both set: either the console asks for a password or your proxy does',
    )
  if (trustHeader !== null && trustProxy.length === 0)
    problems.push(
      'CONSOLE_TRUST_HEADER needs CONSOLE_TRUST_PROXY, the address of your proxy: otherwise any client could name itself in that header',
    )
  if (trustProxy.length > 0 && trustHeader === null && password === null)
    problems.push(
      'CONSOLE_TRUST_PROXY needs CONSOLE_TRUST_HEADER, or CONSOLE_PASSWORD_FILE if the proxy signs no users in',
    )
  if (!isLoopback(host) && password === null && trustHeader === null) problems.push(beyondLoopback(host))
  if (problems.length > 0) return { problems }
  const isProxy = compile([...trustProxy])
  return { access: accessOf(hash, trustHeader), isProxy: (address) => isProxy(address, 0), names: config.names }
}

function accessOf(hash: PasswordHash | null, header: string | null): SignInMethod {
  if (hash !== null) return { kind: 'password', hash }
  return header === null ? { kind: 'open' } : { kind: 'proxy', header }
}

function beyondLoopback(host: string): string {
  return `--host ${host}: the console shows contents of records and changes what is sent, so beyond this machine it must know who asks. Set one of these:
  CONSOLE_PASSWORD_FILE=FILE    it asks for a password; outboxd console --hash-password > FILE makes the file
  CONSOLE_TRUST_HEADER=NAME and CONSOLE_TRUST_PROXY=ADDRESS    your proxy signs users in and names them in that header
or leave out --host and use a tunnel: ssh -L 9465:localhost:9465 THIS-MACHINE`
}
