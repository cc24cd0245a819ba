import { spawn } from 'node:child_process'
import { platform } from 'node:os'

/** What opens an address as if it had been clicked on. */
const openers: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Opens an address in this machine's browser, and says so where there is none. Does not wait for it. */
export function openInBrowser(url: string, say: (line: string) => void): void {
  const [command, ...args] = openers[platform()] ?? ['xdg-open']
  const opening = spawn(command, [...args, url], { stdio: 'ignore', detached: true })
  const failed = () => say(`no browser could be opened here (${command}): open ${url} yourself`)
  opening.once('error', failed)
  opening.once('exit', (code) => (code === 0 ? undefined : failed()))
  opening.unref()
}
