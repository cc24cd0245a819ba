import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Debian's own Python, which has Debian's packages. */
const python = '/usr/bin/python3'
const packages = '/usr/lib/python3/dist-packages'
const needed = ['trytond/modules/sale', 'proteus', 'psycopg2']

/** Returns null if Tryton is installed. */
export function explainMissingTryton(): string | null {
  const isThere = existsSync(python) && needed.every((name) => existsSync(join(packages, name)))
  return isThere
    ? null
    : 'Tryton is not installed. On Debian: apt-get install --no-install-recommends tryton-server tryton-modules-sale tryton-proteus python3-psycopg2'
}

/** Tryton on a database named `tryton`. */
export interface Tryton {
  /** Runs tryton.py. @returns the values that it prints, one per line @throws Error with its last output */
  run(what: 'setup' | 'measure' | 'sell' | 'report', ...numbers: number[]): Promise<unknown[]>
}

/**
 * Creates Tryton's tables with the module for sales.
 *
 * @param server a postgres:// address
 * @param folder for its configuration
 */
export async function installTryton(server: string, folder: string): Promise<Tryton> {
  await mkdir(folder, { recursive: true })
  const conf = join(folder, 'trytond.conf')
  const { username, password, host } = new URL(server)
  // Without a worker, tasks wait: a sale stays confirmed and can become a draft again.
  await writeFile(conf, `[database]\nuri = postgresql://${username}:${password}@${host}/\n[queue]\nworker = True\n`)
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, 'admin\n')
  const admin = ['/usr/bin/trytond-admin', '-c', conf, '-d', 'tryton']
  await runProgram([...admin, '--all', '--email', 'erp@example.com', '-p'], { TRYTONPASSFILE: passwordFile })
  await runProgram([...admin, '-u', 'sale', '--activate-dependencies'], {})
  return {
    run: (what, ...numbers) =>
      runProgram(['-W', 'ignore', join(import.meta.dirname, 'tryton.py'), conf, what, ...numbers.map(String)], {}),
  }
}

/** @returns the JSON values that the program prints */
async function runProgram(args: readonly string[], env: Record<string, string>): Promise<unknown[]> {
  const child = spawn(python, args, {
    env: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed: unknown[] = []
  const lastWords: string[] = []
  const lines = [
    read(child.stdout, (line) => line.startsWith('{') && printed.push(JSON.parse(line))),
    read(child.stderr, (line) => lastWords.push(line)),
  ]
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  await Promise.all(lines)
  if (code !== 0) throw new Error(`${args.join(' ')} left with ${code}:\n${lastWords.slice(-20).join('\n')}`)
  return printed
}

async function read(stream: NodeJS.ReadableStream, onLine: (line: string) => unknown): Promise<void> {
  for await (const line of createInterface({ input: stream })) onLine(line)
}
